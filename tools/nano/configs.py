"""The two shapes, as their config.json states them."""

COMMON = {"num_nextn_predict_layers": 0, "first_k_dense_replace": 1, "moe_layer_freq": 1, "initializer_range": 0.02,
          "tie_word_embeddings": False, "use_cache": True}


def nano_k3(base):
    """Nine layers, attention residuals in blocks of three, MLA in layers 4, 8 and 9 (counted from one)."""
    text = {
        "model_type": "kimi_linear", "architectures": ["KimiLinearForCausalLM"], "vocab_size": base + 256,
        "hidden_size": 192, "intermediate_size": 384, "num_hidden_layers": 9, "num_attention_heads": 3,
        "num_key_value_heads": 3, "q_lora_rank": 96, "kv_lora_rank": 64, "qk_nope_head_dim": 48, "qk_rope_head_dim": 16,
        "v_head_dim": 64, "mla_use_nope": True, "mla_use_output_gate": True,
        "num_experts": 16, "num_experts_per_token": 4, "num_shared_experts": 2, "moe_intermediate_size": 96,
        "routed_expert_hidden_size": 96, "latent_moe_use_norm": True, "moe_renormalize": True,
        "moe_router_activation_func": "sigmoid", "topk_method": "noaux_tc", "use_grouped_topk": True,
        "num_expert_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0,
        "hidden_act": "situ", "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0,
        "attn_res_block_size": 3, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None,
        "max_position_embeddings": 4096, "bos_token_id": base, "eos_token_id": base + 2, "pad_token_id": base + 255,
        "linear_attn_config": {"kda_layers": [1, 2, 3, 5, 6, 7], "full_attn_layers": [4, 8, 9], "num_heads": 3,
                               "head_dim": 64, "short_conv_kernel_size": 4, "use_full_rank_gate": True,
                               "gate_lower_bound": -5.0},
        **COMMON}
    weights = {"num_bits": 4, "type": "float", "group_size": 32, "symmetric": True, "strategy": "group",
               "scale_dtype": "torch.uint8"}
    text["quantization_config"] = quantization("mxfp4-pack-quantized", weights,
                                               ["re:.*self_attn.*", "re:.*shared_experts.*",
                                                r"re:.*mlp\.(gate|up|gate_up|down)_proj.*", "re:.*lm_head.*"])
    return text, {"model_type": "kimi_k3", "architectures": ["KimiK3ForConditionalGeneration"],
                  "bos_token_id": base, "eos_token_id": base + 2, "pad_token_id": base + 255,
                  "tie_word_embeddings": False, "torch_dtype": "bfloat16", "text_config": text}


def nano_k2(base):
    """Five layers; YaRN stretches 512 original positions by four."""
    config = {
        "model_type": "kimi_k2", "architectures": ["DeepseekV3ForCausalLM"], "vocab_size": base + 256,
        "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 5, "num_attention_heads": 4,
        "num_key_value_heads": 4, "q_lora_rank": 128, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 32,
        "v_head_dim": 64, "attention_bias": False,
        "moe_intermediate_size": 128, "n_routed_experts": 16,
        "num_experts_per_tok": 4, "n_shared_experts": 1, "n_group": 1, "topk_group": 1, "topk_method": "noaux_tc",
        "scoring_func": "sigmoid", "norm_topk_prob": True, "routed_scaling_factor": 2.827, "hidden_act": "silu",
        "rms_norm_eps": 1e-5, "rope_theta": 50000.0,
        "rope_scaling": {"type": "yarn", "factor": 4.0, "beta_fast": 1.0, "beta_slow": 1.0, "mscale": 1.0,
                         "mscale_all_dim": 1.0, "original_max_position_embeddings": 512},
        "max_position_embeddings": 2048, "bos_token_id": base, "eos_token_id": base + 2, "pad_token_id": base + 255,
        "torch_dtype": "bfloat16", **COMMON}
    weights = {"num_bits": 4, "type": "int", "group_size": 32, "symmetric": True, "strategy": "group", "dynamic": False,
               "observer": "minmax"}
    config["quantization_config"] = quantization("pack-quantized", weights,
                                                 ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*",
                                                  r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"])
    return config, config


def quantization(form, weights, ignore):
    return {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed", "ignore": ignore,
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None,
                                          "output_activations": None}}}


SHAPES = {"nano-k3": nano_k3, "nano-k2": nano_k2}
