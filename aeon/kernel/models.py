"""What a run gives back when its TTL, or another cap of it, ends before convergence."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from aeon.convergence.models import PairStatus
from aeon.values import Value

ExpirationPoint = Literal["phase_boundary", "mid_phase"]
SpentReason = Literal["ttl_expired", "max_seconds", "max_tokens", "max_cost", "max_llm_calls", "max_passes"]


class TTLExpiredMetadata(Value):
    """The latest assessment when a budget ended, and its pass; without one the scores are None, and the pass is the one
    that a budget ended (FR-062)."""

    completeness_score: float | None = None
    coherence_score: float | None = None
    consistency_score: float | None = None
    consistency_status: dict[str, PairStatus] = Field(default_factory=dict)
    detected_issues: tuple[str, ...] = ()
    reason_codes: tuple[str, ...] = ()
    pass_number: int


class TTLExpirationResponse(Value):
    """What a run gives back when its TTL, or another cap of it, ends before convergence (FR-062, FR-064).

    `latest_pass_result` is the latest completed pass, always there at a phase boundary; without one there is a
    `partial_result`. `result_type` names the kind of response, `termination_reason` the cap.
    """

    converged: Literal[False] = False
    result_type: Literal["ttl_expired"] = "ttl_expired"
    latest_pass_result: dict[str, Any] | None = None
    partial_result: dict[str, Any] | None = None
    expiration_point: ExpirationPoint
    ttl_expired_metadata: TTLExpiredMetadata
    termination_reason: SpentReason = "ttl_expired"

    @model_validator(mode="after")
    def _has_a_result(self) -> TTLExpirationResponse:
        if self.latest_pass_result is None and self.expiration_point == "phase_boundary":
            raise ValueError(
                "a budget that ends at a phase boundary leaves a completed pass: latest_pass_result is needed"
            )
        if self.latest_pass_result is None and self.partial_result is None:
            raise ValueError("without a completed pass partial_result is needed")
        return self
