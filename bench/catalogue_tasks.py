# SPDX-License-Identifier: Apache-2.0
"""torchvision's networks beside classification: detection with its post-processing, key points, masks, video, optical flow."""
from catalogue import entry


def detection(name, size, small_size, **options):
    """Boxes, scores and what else the detector gives of one picture, as a tuple."""
    def make(is_small, batch):
        import torch
        import torchvision

        class Flat(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None, **options)

            def forward(self, x):
                return tuple(value for found in self.inner(list(x)) for value in found.values())

        side = small_size if is_small else size
        return Flat(), (torch.rand(batch, 3, side, side),)
    entry(name, "torchvision", True)(make)


detection("fasterrcnn_mobilenet_v3_large_320_fpn", 320, 128)
detection("fasterrcnn_resnet50_fpn_v2", 320, 128, min_size=320, max_size=320)
detection("retinanet_resnet50_fpn", 320, 128, min_size=320, max_size=320)
detection("ssd300_vgg16", 300, 300)
detection("ssdlite320_mobilenet_v3_large", 320, 320)
detection("fcos_resnet50_fpn", 320, 128, min_size=320, max_size=320)
detection("maskrcnn_resnet50_fpn", 320, 128, min_size=320, max_size=320)
detection("keypointrcnn_resnet50_fpn", 320, 128, min_size=320, max_size=320)


def video(name, size, small_size, frames):
    def make(is_small, batch):
        import torch
        import torchvision
        side = small_size if is_small else size
        return getattr(torchvision.models.video, name)(weights=None), (torch.rand(batch, 3, frames, side, side),)
    entry(name, "torchvision", True)(make)


video("swin3d_t", 112, 64, 8)
video("mvit_v2_s", 224, 224, 16)
video("s3d", 112, 64, 16)


@entry("raft_small", "torchvision", True)
def raft(small, batch):
    import torch
    import torchvision

    class Flow(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torchvision.models.optical_flow.raft_small(weights=None)

        def forward(self, first, second):
            return self.inner(first, second, num_flow_updates=2 if small else 6)[-1]

    return Flow(), (torch.rand(batch, 3, 128, 128), torch.rand(batch, 3, 128, 128))
