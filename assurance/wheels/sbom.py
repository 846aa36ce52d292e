"""The software bill of materials of a wheel, CycloneDX 1.6 in JSON, which PEP 770 puts into the wheel.

It lists what the wheel requires at run time, what it was built with, and the C files that were compiled.
"""

import json
import re
import subprocess
import tomllib
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from assurance.wheels.build import ROOT, sha256


def _hash(value: str) -> list[HashType]:
    return [HashType(alg=HashAlgorithm.SHA_256, content=value)]


def _package(name: str, version: str | None = None, **details: object) -> Component:
    purl = PackageURL("pypi", name=re.sub(r"[-_.]+", "-", name).lower(), version=version)
    return Component(name=name, version=version, purl=purl, bom_ref=str(purl), type=ComponentType.LIBRARY, **details)


def _installed(wheels: Path) -> list[Component]:
    """The build requirements, from the wheels that were unpacked to build with."""
    found = []
    for path in sorted(wheels.glob("*.whl"), key=lambda path: path.name.lower()):
        name, version = path.name.split("-")[:2]
        made = _package(name, version, hashes=_hash(sha256(path)), scope=ComponentScope.EXCLUDED)
        made.properties.add(Property(name="dpfast:role", value="build requirement"))
        made.properties.add(Property(name="dpfast:file", value=path.name))
        found.append(made)
    return found


def _required() -> list[Component]:
    """The run-time requirements: a wheel has ranges of versions, not versions."""
    found = []
    for requirement in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]:
        name = re.match(r"[\w.-]+", requirement).group()
        made = _package(name, scope=ComponentScope.REQUIRED)
        made.properties.add(Property(name="dpfast:role", value="run-time requirement"))
        made.properties.add(Property(name="dpfast:versions", value=requirement.removeprefix(name)))
        found.append(made)
    return found


def _compiled(sources: Mapping[str, str]) -> list[Component]:
    made = [
        Component(name=name, bom_ref=f"file:{name}", type=ComponentType.FILE, hashes=_hash(value))
        for name, value in sources.items()
    ]
    for component in made:
        component.scope = ComponentScope.EXCLUDED
        component.properties.add(Property(name="dpfast:role", value="compiled source"))
    return made


def compiler(command: str) -> Component:
    version = subprocess.check_output([command, "--version"], text=True).splitlines()[0]
    made = Component(name="gcc", version=version, type=ComponentType.APPLICATION, bom_ref="compiler")
    made.scope = ComponentScope.EXCLUDED
    made.properties.add(Property(name="dpfast:role", value="compiler"))
    return made


def describe(project: Mapping, wheels: Path, command: str, sources: Mapping[str, str], sdist: Path, date: int) -> bytes:
    """The SBOM. Its serial number is a hash of its content, its date that of the commit."""
    whole = _package(project["name"], project["version"], description=project["description"])
    whole.licenses.add(DisjunctiveLicense(id=project["license"]))
    whole.properties.add(Property(name="dpfast:sdist", value=sdist.name))
    whole.properties.add(Property(name="dpfast:sdist-sha256", value=sha256(sdist)))
    needed = _required()
    parts = [*needed, *_installed(wheels), compiler(command), *_compiled(sources)]
    text = repr([(part.name, part.version, sorted(map(repr, part.hashes))) for part in parts])
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, sha256(sdist) + text),
        metadata=BomMetaData(component=whole, timestamp=datetime.fromtimestamp(date, UTC)),
        components=parts,
    )
    bom.register_dependency(whole, needed)
    written = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)
    return (json.dumps(json.loads(written), indent=1, sort_keys=True) + "\n").encode()


def errors(document: bytes) -> list[str]:
    """Where a document departs from the schema of CycloneDX 1.6."""
    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(document.decode(), all_errors=True)
    return [str(error).splitlines()[0] for error in found or ()]
