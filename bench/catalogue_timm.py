# SPDX-License-Identifier: Apache-2.0
"""Further families of timm, one model each, the smallest usual size, at the size of picture that the model says itself."""
from catalogue import entry, image


def own_size(name, side=None):
    def make(is_small, batch):
        import timm
        module = timm.create_model(name, pretrained=False)
        return module, image(batch, side or module.default_cfg["input_size"][-1])
    entry(f"timm_{name}", "timm", True)(make)


for convolutional in (
        "hardcorenas_f", "ghostnetv2_100", "ghostnetv3_100", "mobilenetv3_small_050", "mobilenet_edgetpu_v2_xs", "semnasnet_075", "spnasnet_100", "fbnetv3_b", "efficientnet_lite0",
        "tf_efficientnetv2_b0", "repghostnet_050", "repvgg_b0", "mobileone_s0", "cspresnet50", "cspresnext50", "darknet53", "selecsls42b", "inception_v4", "inception_resnet_v2",
        "legacy_xception", "nasnetalarge", "pnasnet5large", "seresnext26t_32x4d", "gcresnet33ts", "resnetv2_50", "resnetrs50", "resnetblur50", "resnet26t", "resnest14d",
        "nfnet_f0", "nf_regnet_b1", "nf_resnet26", "eca_resnext26ts", "bat_resnext26ts", "regnetz_b16", "regnetv_040", "gernet_s", "tresnet_m", "dla60_res2net", "res2next50",
        "convmixer_768_32", "convnext_zepto_rms", "hgnet_tiny", "rdnet_tiny", "fasternet_t0", "skresnext50_32x4d", "legacy_seresnet18", "fbnetc_100",
        "fastvit_mci0", "mobilenetv4_conv_aa_medium", "ecaresnet50d_pruned", "efficientnet_b1_pruned", "cs3se_edgenet_x", "resnet10t", "dm_nfnet_f0", "resnet50_gn"):
    own_size(convolutional)
for attending in (
        "efficientvit_m0", "efficientvit_b1", "shvit_s1", "swiftformer_xs", "mobilenetv4_hybrid_medium", "nextvit_small", "efficientformerv2_s0", "convit_tiny",
        "coatnet_nano_rw_224", "maxvit_nano_rw_256", "maxxvit_rmlp_nano_rw_256", "volo_d1_224", "haloregnetz_b", "sebotnet33ts_256", "vit_tiny_patch16_224",
        "vit_relpos_small_patch16_224", "vit_srelpos_small_patch16_224", "vit_small_r26_s32_224", "deit3_small_patch16_224", "vit_little_patch16_reg4_gap_256",
        "vit_base_patch16_rope_reg1_gap_256", "naflexvit_base_patch16_gap", "vitamin_small_224", "hiera_tiny_224", "mvitv2_tiny", "samvit_base_patch16_224", "swin_s3_tiny_224",
        "swinv2_cr_tiny_ns_224", "twins_pcpvt_small", "caformer_s18", "poolformerv2_s12", "gmlp_ti16_224", "tnt_s_patch16_224", "levit_conv_128s", "mobilevitv2_050", "csatv2",
        "hieradet_small", "mobilenetv5_base", "flexivit_small", "vit_pwee_patch16_reg1_gap_256", "deit_tiny_distilled_patch16_224",
        "vit_small_plus_patch16_dinov3"):
    own_size(attending)
