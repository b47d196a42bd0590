"""Mail addresses that may be written to: one plain address each, in the form it is sent in."""

from typing import Annotated, Final

from pydantic import AfterValidator, StringConstraints, WithJsonSchema

#: Characters of an address (RFC 5321: a path has 256 with its brackets).
MAX_CHARS: Final = 254


def judged(text: str) -> str:
    """The address in ASCII, its domain in lower case and international parts in their `xn--` form.

    Raises:
        ValueError: it is none, or none that mail can be sent to from anywhere.
    """
    from email_validator import EmailNotValidError, validate_email

    if any(character in text for character in "<>\"'(),;: \t\r\n\0"):
        raise ValueError("give one plain address such as ann@example.com, without a name, brackets, quotes or blanks")
    try:
        found = validate_email(
            text,
            check_deliverability=False,
            strict=True,
            allow_smtputf8=False,
            allow_quoted_local=False,
            allow_domain_literal=False,
            allow_display_name=False,
        )
    except EmailNotValidError as error:
        raise ValueError(str(error)) from None
    address = found.ascii_email
    if address is None:
        raise ValueError("has letters before the @ that not every mail server takes")
    return address


def same(one: str) -> str:
    """What is equal for addresses of one mailbox: servers that tell the case of a local part apart are not met."""
    return one.casefold()


Address = Annotated[
    str,
    StringConstraints(min_length=3, max_length=MAX_CHARS),
    AfterValidator(judged),
    WithJsonSchema({"type": "string", "format": "email", "maxLength": MAX_CHARS}),
]

__all__ = ["Address", "judged", "same"]
