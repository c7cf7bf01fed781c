# SPDX-License-Identifier: Apache-2.0
"""Models of torchvision and timm."""
from catalogue import entry, image


def torchvision_model(name, small=None, size=224, small_size=64, **options):
    """`small`: the smaller module's constructor; without one the full one is given a smaller picture."""
    def make(is_small, batch):
        import torchvision
        module = small(torchvision.models) if is_small and small else torchvision.models.get_model(name, weights=None, **options)
        return module, image(batch, small_size if is_small else size)
    entry(name, "torchvision", True)(make)


def timm_model(name, small=None, size=224, small_size=64):
    def make(is_small, batch):
        import timm
        side = small_size if is_small else size
        options = {**small, "img_size": side} if is_small and small else {}
        return timm.create_model(name, pretrained=False, **options), image(batch, side)
    entry(f"timm_{name}", "timm", True)(make)


torchvision_model("vit_b_16", lambda m: m.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128), small_size=32)
torchvision_model("swin_t", lambda m: m.SwinTransformer(patch_size=[4, 4], embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=[7, 7]), small_size=112)
torchvision_model("convnext_tiny", small_size=64)
torchvision_model("resnet50")
torchvision_model("efficientnet_b0")
torchvision_model("mobilenet_v3_large")
torchvision_model("densenet121")
torchvision_model("squeezenet1_1")
timm_model("vit_base_patch16_224", {"depth": 2, "embed_dim": 64, "num_heads": 4})
timm_model("deit_small_patch16_224", {"depth": 2, "embed_dim": 64, "num_heads": 4})
timm_model("swin_tiny_patch4_window7_224", {"depths": (2, 2), "embed_dim": 32, "num_heads": (2, 4)}, small_size=112)
timm_model("eva02_tiny_patch14_224", {"depth": 2}, small_size=56)
for convolutional in ("regnet_y_400mf", "shufflenet_v2_x1_0", "vgg11_bn", "googlenet", "squeezenet1_1", "mnasnet1_0", "resnext50_32x4d", "efficientnet_v2_s"):
    torchvision_model(convolutional, **({"init_weights": False} if convolutional == "googlenet" else {}))
torchvision_model("inception_v3", size=299, small_size=96, init_weights=False)
torchvision_model("swin_v2_t", lambda m: m.swin_transformer.SwinTransformer(patch_size=[4, 4], embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=[8, 8],
                  block=m.swin_transformer.SwinTransformerBlockV2, downsample_layer=m.swin_transformer.PatchMergingV2), small_size=128, size=256)
torchvision_model("maxvit_t", lambda m: m.MaxVit(input_size=(112, 112), stem_channels=32, partition_size=7, block_channels=[32, 64], block_layers=[1, 1], head_dim=16,
                  stochastic_depth_prob=0), small_size=112)
for timm_name in ("repvgg_a0", "ghostnet_100", "seresnet50", "hrnet_w18_small", "mobilevit_s", "edgenext_x_small", "poolformer_s12", "ecaresnet26t", "res2net50_14w_8s",
                  "cspdarknet53", "lambda_resnet26t", "resnest26d"):
    timm_model(timm_name)
timm_model("convnextv2_atto")
timm_model("levit_128", small_size=224)
timm_model("mixer_s32_224", small_size=224)
timm_model("coatnet_0_rw_224", small_size=224)
timm_model("beit_base_patch16_224", {"depth": 2, "embed_dim": 64, "num_heads": 4})
timm_model("cait_xxs24_224", {"depth": 2, "embed_dim": 64, "num_heads": 4})
timm_model("swinv2_tiny_window8_256", {"depths": (2, 2), "embed_dim": 32, "num_heads": (2, 4)}, size=256, small_size=128)
timm_model("pvt_v2_b0", small_size=224)


def torchvision_part(name, family, size, small_size, frames=None):
    """A network of torchvision.models' segmentation or video package."""
    def make(is_small, batch):
        import torch
        import torchvision

        class Out(torch.nn.Module):
            def __init__(self):
                super().__init__()
                options = {"weights_backbone": None} if family == "segmentation" else {}
                self.inner = getattr(getattr(torchvision.models, family), name)(weights=None, **options)

            def forward(self, x):
                result = self.inner(x)
                return result["out"] if isinstance(result, dict) else result

        side = small_size if is_small else size
        return Out(), (torch.rand(batch, 3, *([frames] if frames else []), side, side),)
    entry(name, "torchvision", True)(make)


for segmentation in ("deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large"):
    torchvision_part(segmentation, "segmentation", 520, 96)
for video in ("r3d_18", "r2plus1d_18", "mc3_18"):
    torchvision_part(video, "video", 112, 32, frames=16)
