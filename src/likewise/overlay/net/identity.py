"""Identities: a small certificate authority for a federation, and the certificates of its nodes and clients.

A node's id is the hash of its certificate's public key. Both sides of a connection present a certificate of the
federation, so nobody can claim an id without its private key.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from likewise.errors import BuildError, MissingError
from likewise.overlay.ring.ids import Key, key_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate

YEARS: Final = 10
AUTHORITY: Final = ("ca.pem", "ca.key")
OWN: Final = ("node.pem", "node.key")


def init_authority(folder: Path) -> None:
    """Create the authority of a new federation; its key signs the certificates of all members."""
    certificate, key = (folder / name for name in AUTHORITY)
    if certificate.exists():
        raise BuildError(f"there is a federation in {folder} already", hint="choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    secret = _new_key()
    signed = _sign("likewise federation", secret, None, secret)
    _write(certificate, _pem(signed))
    _write(key, _pem_key(secret))


def init_node(folder: Path, authority: Path) -> Key:
    """Create the certificate of a node or client, signed by the authority; returns its id."""
    if (folder / OWN[0]).exists():
        raise BuildError(f"there is a certificate in {folder} already", hint="use it, or choose another folder")
    issuer, signer = _read_authority(authority)
    folder.mkdir(parents=True, exist_ok=True)
    secret = _new_key()
    signed = _sign("likewise node", secret, issuer, signer)
    for path, data in zip(OWN, (_pem(signed), _pem_key(secret)), strict=True):
        _write(folder / path, data)
    _write(folder / AUTHORITY[0], _pem(issuer))
    return id_of_certificate(_der(signed))


def _read_authority(folder: Path) -> tuple[Certificate, EllipticCurvePrivateKey]:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    certificate, key = (folder / name for name in AUTHORITY)
    if not certificate.exists() or not key.exists():
        hint = "create one: likewise node init --federation DIR"
        raise MissingError(f"there is no federation in {folder}", hint=hint)
    secret = load_pem_private_key(key.read_bytes(), None)
    if not isinstance(secret, EllipticCurvePrivateKey):
        hint = "create a federation: likewise node init --federation DIR"
        raise BuildError(f"{key} is not the key of a federation", hint=hint)
    return x509.load_pem_x509_certificate(certificate.read_bytes()), secret


def _new_key() -> EllipticCurvePrivateKey:
    try:
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        hint = "pip install 'likewise[overlay]'"
        raise MissingError("certificates need the package cryptography", hint=hint) from None
    return ec.generate_private_key(ec.SECP256R1())


def _sign(
    name: str, secret: EllipticCurvePrivateKey, issuer: Certificate | None, signer: EllipticCurvePrivateKey
) -> Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=365 * YEARS))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(secret.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
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
    return builder.sign(signer, hashes.SHA256())


def _pem(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _der(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def _pem_key(secret: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, data: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(data)


def id_of_certificate(der: bytes) -> Key:
    """The id of a node: the hash of its public key."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = x509.load_der_x509_certificate(der).public_key()
    return key_of(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def own_id(folder: Path) -> Key:
    """The id of the certificate in a folder."""
    path = folder / OWN[0]
    if not path.exists():
        hint = "create one: likewise node init --state DIR --federation DIR"
        raise MissingError(f"there is no certificate in {folder}", hint=hint)
    return id_of_certificate(ssl.PEM_cert_to_DER_cert(path.read_text()))


def context_of(folder: Path, *, server: bool) -> ssl.SSLContext:
    """A TLS context that requires a certificate of the federation from both sides."""
    own_id(folder)
    purpose = ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT
    context = ssl.SSLContext(purpose)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(folder / AUTHORITY[0])
    context.load_cert_chain(folder / OWN[0], folder / OWN[1])
    return context
