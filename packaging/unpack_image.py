#!/usr/bin/env python3
"""unpack_image.py IMAGE.tar FOLDER: unpacks the layers of an OCI image layout, after their digests were compared."""

import gzip
import hashlib
import io
import json
import sys
import tarfile


def main(image: str, folder: str) -> None:
    with tarfile.open(image) as archive:
        files = {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}
    if json.loads(files["oci-layout"]) != {"imageLayoutVersion": "1.0.0"}:
        sys.exit("unpack_image: this is no OCI layout of version 1.0.0")

    def blob(descriptor: dict) -> bytes:
        algorithm, digest = descriptor["digest"].split(":")
        content = files[f"blobs/{algorithm}/{digest}"]
        if hashlib.new(algorithm, content).hexdigest() != digest or len(content) != descriptor["size"]:
            sys.exit(f"unpack_image: the blob {digest} is damaged")
        return content

    manifest = json.loads(blob(json.loads(files["index.json"])["manifests"][0]))
    config = json.loads(blob(manifest["config"]))
    for layer, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        content = gzip.decompress(blob(layer))
        if f"sha256:{hashlib.sha256(content).hexdigest()}" != diff_id:
            sys.exit(f"unpack_image: the layer {diff_id} is damaged")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(folder, numeric_owner=True)
    print(" ".join(config["config"]["Entrypoint"]))


if __name__ == "__main__":
    main(*sys.argv[1:3])
