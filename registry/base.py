"""The base of every model that people, files or the API write: camelCase JSON, nothing unknown, nothing coerced."""

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

#: Any value JSON can hold. A precise recursive type costs more casts than it finds faults.
Json = Any


class Model(BaseModel):
    """Strict (no text to number), closed (unknown keys refused), finite (no NaN); JSON names are camelCase."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        frozen=True,
    )

    def to_json(self) -> dict[str, Json]:
        """The camelCase object, with absent optional fields left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
