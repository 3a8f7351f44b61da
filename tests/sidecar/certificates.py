"""Certificates of an authority that lives as long as the test."""

import ssl
from pathlib import Path

import grpc
import trustme


class Authority:
    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._ca = trustme.CA(organization_name=name)
        self.file = folder / f"{name}.pem"
        self._ca.cert_pem.write_to_path(str(self.file))

    def issue(self, name: str = "server") -> dict[str, Path]:
        """A certificate for localhost; issued again, it replaces the files."""
        leaf = self._ca.issue_cert("localhost", "127.0.0.1")
        files = {
            "cert_file": self._folder / f"{name}.crt",
            "key_file": self._folder / f"{name}.key",
        }
        leaf.private_key_pem.write_to_path(str(files["key_file"]))
        files["cert_file"].write_bytes(b"".join(each.bytes() for each in leaf.cert_chain_pems))
        return files

    def context(self, client: dict[str, Path] | None = None) -> ssl.SSLContext:
        """What an HTTP client trusts, and what it shows."""
        context = ssl.create_default_context(cafile=self.file)
        if client:
            context.load_cert_chain(client["cert_file"], client["key_file"])
        return context

    def credentials(self, client: dict[str, Path] | None = None) -> grpc.ChannelCredentials:
        """The same for gRPC."""
        if client is None:
            return grpc.ssl_channel_credentials(self.file.read_bytes())
        key, chain = client["key_file"].read_bytes(), client["cert_file"].read_bytes()
        return grpc.ssl_channel_credentials(self.file.read_bytes(), key, chain)
