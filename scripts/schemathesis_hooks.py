"""What Schemathesis can't make from a description: archives, most of them hostile. scripts/test-api.sh names this file."""

import io
import tarfile

import schemathesis
from hypothesis import strategies as st

NAMES = st.sampled_from(
    ["new/run.json", "new/x", "one/run.json", "../outside/run.json", "/tmp/outside/run.json", "new/../../outside", ".hidden/run.json", "new/a/b"]
)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])


@st.composite
def archives(draw):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in draw(st.lists(NAMES, max_size=4)):
            entry = tarfile.TarInfo(name)
            entry.type = draw(KINDS)
            content = draw(st.binary(max_size=600)) if entry.type == tarfile.REGTYPE else b""
            entry.size, entry.linkname = len(content), "/tmp/outside"
            archive.addfile(entry, io.BytesIO(content))
    whole = out.getvalue()
    return whole[: draw(st.integers(0, len(whole)))] if draw(st.booleans()) else whole


schemathesis.openapi.media_type("application/x-tar", st.one_of(archives(), st.binary(max_size=2000)))


@schemathesis.serializer("application/x-tar")
def tar(ctx, value):
    return value if isinstance(value, bytes) else str(value).encode()
