"""Which GPU model does a native word mean? (`nvidia_h100_80gb_hbm3` -> `H100`; unknown words stay as they are)"""

import re

from scheduling.inventory.sightings import words

_MODELS = words(
    "gb200 gb300 gh200 b100 b200 b300 h100 h200 h800 h20 a100 a800 a40 a30 a16 a10 a10g a2 l40s l40 l4 t4 v100 p100"
    " p40 p4 k80 m60 mi210 mi250 mi250x mi300a mi300x mi325x mi350x mi355x vr200"
)
_HGX_MODELS = words("A100 A800 H100 H800 H200 H20 B100 B200 B300")
_CARD_WORDS = words("pcie nvl")
_WORD = re.compile(r"[a-z0-9]+")
_MACHINE_PREFIX = re.compile(r"(?:dgx|hgx|nd)(?=[a-z])")
_INSTANCE_TYPES = (
    ("p6e-gb200", "GB200"), ("p6e-gb300", "GB300"), ("p6-b200", "B200"), ("p6-b300", "B300"), ("p5en.", "H200"),
    ("p5e.", "H200"), ("p5.", "H100"), ("p4de.", "A100"), ("p4d.", "A100"), ("p3dn.", "V100"), ("p3.", "V100"),
    ("a4x-", "GB200"), ("a4-highgpu", "B200"), ("a3-ultragpu", "H200"), ("a3-", "H100"), ("a2-", "A100"),
    ("bm.gpu.gb200", "GB200"), ("bm.gpu.h100", "H100"), ("bm.gpu.h200", "H200"), ("bm.gpu.b200", "B200"),
)  # fmt: skip


def known_model(text: str) -> str:
    """The model named anywhere in `text` in one of the usual spellings, or "" when none is."""
    for word in _WORD.findall(text.lower()):
        for candidate in (word, _MACHINE_PREFIX.sub("", word)):
            if candidate in _MODELS:
                return candidate.upper()
    return ""


def gpu_model(native: str) -> str:
    """The fleet-wide name of a native GPU type: a known model in capitals, an unknown word kept verbatim."""
    # A MIG slice (a100_1g.5gb) is not the GPU it is cut from.
    if re.search(r"\d+g\.\d+gb", native.lower()):
        return native
    return known_model(native) or native


def model_of_instance_type(text: str) -> str:
    """The model behind a cloud's instance type (`p5.48xlarge`, `Standard_ND96isr_H100_v5`), or "" when unknown."""
    lower = text.lower()
    return next((model for start, model in _INSTANCE_TYPES if lower.startswith(start)), "") or known_model(lower)


def is_rack_scale(model: str) -> bool:
    """Is this a model whose NVLink reaches over the whole rack (Grace-Blackwell and after)?"""
    return model.startswith(("GB", "VR"))


def is_hgx_board(model: str, native: str, gpus_per_node: int) -> bool:
    """Do `gpus_per_node` GPUs of this model sit on one NVSwitch board? Cards (PCIe, NVL) do not."""
    said = frozenset(_WORD.findall(native.lower()))
    return model in _HGX_MODELS and gpus_per_node in (4, 8) and not said & _CARD_WORDS
