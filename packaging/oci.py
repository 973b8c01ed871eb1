#!/usr/bin/env python3
"""oci.py LAYER.tar IMAGE.tar BASE: writes an OCI image layout with one layer, as a tar archive (the image specification, version 1.0)."""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

TYPE = "application/vnd.oci.image"


class Layout:
    """The blobs of an image, and the archive that they go into."""

    def __init__(self, path: Path, epoch: int) -> None:
        self.archive = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)
        self.epoch = epoch
        self.blobs: dict[str, bytes] = {}

    def add_blob(self, media_type: str, content: bytes) -> dict:
        """Keeps a blob, and returns the descriptor that refers to it."""
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def write(self, name: str, content: bytes | None) -> None:
        entry = tarfile.TarInfo(name)
        entry.mtime = self.epoch
        entry.mode = 0o755 if content is None else 0o644
        entry.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
        entry.size = len(content or b"")
        self.archive.addfile(entry, io.BytesIO(content or b""))

    def close(self, index: bytes) -> None:
        for folder in ["blobs", "blobs/sha256"]:
            self.write(folder, None)
        for name, content in sorted(self.blobs.items()):
            self.write(name, content)
        self.write("index.json", index)
        self.write("oci-layout", to_json({"imageLayoutVersion": "1.0.0"}))
        self.archive.close()


def to_json(value: dict) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def main(layer_path: Path, image: Path, base: str) -> None:
    version, epoch = os.environ["VERSION"], int(os.environ["SOURCE_DATE_EPOCH"])
    created = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    layer = layer_path.read_bytes()
    layout = Layout(image, epoch)
    labels = {
        "org.opencontainers.image.title": "whyso",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.description": "Finds out why a database does not go faster",
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "whyso.base": base,
    }
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": created,
        "config": {
            "Entrypoint": ["/usr/bin/whyso"],
            "Cmd": ["--help"],
            "Env": ["PATH=/usr/bin", "HOME=/data"],
            "WorkingDir": "/data",
            "Volumes": {"/data": {}},
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created": created, "created_by": "packaging/oci.py"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{TYPE}.manifest.v1+json",
        "config": layout.add_blob(f"{TYPE}.config.v1+json", to_json(config)),
        "layers": [layout.add_blob(f"{TYPE}.layer.v1.tar+gzip", gzip.compress(layer, 9, mtime=0))],
        "annotations": labels,
    }
    descriptor = layout.add_blob(f"{TYPE}.manifest.v1+json", to_json(manifest))
    descriptor["annotations"] = {"org.opencontainers.image.ref.name": f"whyso:{version}"}
    descriptor["platform"] = {"architecture": "amd64", "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": f"{TYPE}.index.v1+json", "manifests": [descriptor]}
    layout.close(to_json(index))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
