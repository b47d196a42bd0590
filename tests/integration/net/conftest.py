"""A trap site, and a guard that may reach it and nothing else on this machine."""

import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.traps import TrapSite, serving
from workers.net.guard import Guard


@pytest.fixture
def site() -> Iterator[TrapSite]:
    with serving() as found:
        yield found


@pytest.fixture
def other() -> Iterator[TrapSite]:
    """Another site of the same machine: another origin."""
    with serving() as found:
        yield found


@pytest.fixture
def guard(site: TrapSite) -> Guard:
    return Guard(allow=[("127.0.0.1", site.port)])


@dataclass(frozen=True)
class Certificates:
    """A root of our own and a certificate of shop.example.com that it signed."""

    root: Path
    chain: Path

    def server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain)
        return context

    def trusting(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.root))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    root_key, root = _certificate("Root of the tests", None, None, [])
    names: list[x509.GeneralName] = [
        x509.DNSName("shop.example.com"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.2")),
    ]
    key, leaf = _certificate("shop.example.com", root_key, root, names)
    (folder / "root.pem").write_bytes(root.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "chain.pem").write_bytes(private + leaf.public_bytes(serialization.Encoding.PEM))
    return Certificates(folder / "root.pem", folder / "chain.pem")


def _certificate(
    name: str,
    issuer_key: ec.EllipticCurvePrivateKey | None,
    issuer: x509.Certificate | None,
    names: list[x509.GeneralName],
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if issuer is None:
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = builder.add_extension(usage, critical=True)
    else:
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())  # type: ignore[arg-type]
        builder = builder.add_extension(authority, critical=False)
    return key, builder.sign(issuer_key or key, hashes.SHA256())
