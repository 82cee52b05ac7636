"""The forward pass: all bands of sets upward; a lost one is made again from the two below it."""

from __future__ import annotations

import functools

from .age_counts import count_ages
from .background import BackgroundWriter, RunTimer
from .bands import bands_of, slots_per_age
from .errors import PublishedMismatch
from .forward import AfterstateLayer, Layer, enumerate_layer
from .layer import Band, LayerCounts
from .layer_index import build_layer_index
from .layer_sets import KIND as SETS
from .layer_sets import BandBuilder, LayerSets
from .options import SolveOptions
from .progress import Progress
from .progress_log import ProgressLog
from .rates import FORWARD
from .shape import Shape
from .store import Store
from .workers import Workers


def forward_pass(
    store: Store,
    shape: Shape,
    max_age: int,
    options: SolveOptions,
    workers: Workers,
    log: ProgressLog | None = None,
) -> bool:
    """Enumerate and store the missing bands up to an age; returns whether there were any."""
    for counts in LayerSets(store).counts():
        _expect(counts, options)
    bands = [b for b in bands_of(shape) if b.first <= max_age and not _reaches(store, b, max_age)]
    if bands:
        store.write_record("run.json", {**store.read_run(), "max_age": max_age})
        _enumerate_bands(store, shape, bands, max_age, options, workers, log)
    if max_age == shape.top_age:
        return store.finish_kind(SETS, bands_of(shape)) or bool(bands)
    return bool(bands)


def _reaches(store: Store, band: Band, max_age: int) -> bool:
    """Whether a band is stored up to an age; a band cut short may be."""
    manifest = store.stored_manifest(SETS, band)
    if manifest is None:
        return False
    return bool(manifest["is_complete"]) or int(manifest["layers"][-1]["age"]) + 2 > max_age


def _enumerate_bands(
    store: Store,
    shape: Shape,
    bands: list[Band],
    max_age: int,
    options: SolveOptions,
    workers: Workers,
    log: ProgressLog | None,
) -> None:
    """Enumerate and store bands, upward; what is below each of them is stored by then."""
    slots = slots_per_age(shape)
    counts = count_ages(shape, max_age, expected=options.expected_counts)
    work = dict(zip(counts.ages.tolist(), FORWARD.kernels.of(counts).tolist(), strict=True))
    total_work = sum(work[age] for b in bands for age in b.ages if age <= max_age)
    if log:
        log.begin("forward", sum(work.values()) - total_work, sum(work.values()))
    ids = LayerSets(store).ids
    window: dict[int, AfterstateLayer] = {}
    reached = 0
    with (
        RunTimer(store, "forward_seconds") as timer,
        Progress(
            f"{shape.name} forward",
            total_work,
            enabled=options.show_progress,
            on_layer=log.advance if log else None,
        ) as progress,
        BackgroundWriter() as writer,
    ):
        for band in bands:
            if band.first != reached + 2:
                writer.finish()
                window = _read_window(LayerSets(store), band)
            ages = range(band.first, min(band.last, max_age) + 1, 2)
            # A set takes at most about a bit a slot.
            forecast = 2 * float(slots[ages[0] // 2 : ages[-1] // 2 + 1].sum()) / 8
            store.check_space(SETS, band, forecast)
            builder = BandBuilder(ids)
            for age in ages:
                layer = enumerate_layer(shape, age, window, workers)
                _expect(layer.counts, options)
                builder.add(layer)
                _slide(window, layer, age)
                progress.advance(age, work[age], layer.counts.states)
                del layer  # its states, while the next are enumerated
            reached = ages[-1]
            # The digest of the band before goes into this one's manifest.
            writer.finish()
            if log and band.first > 4:
                log.saved(band.first - 2)
            parents = {
                f"{SETS}/{below.name}": store.manifest_digest(SETS, below)
                for below in _bands_below(shape, band)
            }
            is_complete = band.last <= max_age
            writer.submit(functools.partial(builder.commit, store, band, is_complete, parents))
            if not options.overlaps:
                writer.finish()
            timer.save()
        writer.finish()
        if log:
            log.saved(reached)


def _slide(window: dict[int, AfterstateLayer], layer: Layer, age: int) -> None:
    window[age] = AfterstateLayer(layer.index, layer.afterstates)
    window.pop(age - 4, None)


def _read_window(sets: LayerSets, band: Band) -> dict[int, AfterstateLayer]:
    """The afterstates of the two ages before a band, from the bands stored."""
    window = {}
    for below in _bands_below(sets.shape, band):
        stored = sets.read_band(below)
        for age in (band.first - 4, band.first - 2):
            if age in below.ages:
                bitmap = stored.bitmap(age, "afterstates")
                window[age] = AfterstateLayer(build_layer_index(sets.shape, age), bitmap)
    return window


def _bands_below(shape: Shape, band: Band) -> list[Band]:
    """The bands that hold the two ages before a band, which its layers come from."""
    bands = bands_of(shape)
    number = bands.index(band)
    # A band has at least one age: the two ages are in the two bands before.
    return [b for b in bands[max(number - 2, 0) : number] if b.last >= band.first - 4]


def _expect(counts: LayerCounts, options: SolveOptions) -> None:
    expected = options.expected_counts.get(counts.age)
    if expected is not None and expected != counts.states:
        raise PublishedMismatch(
            f"age {counts.age}: {counts.states:,} states, expected {expected:,}; "
            "all bands before are safe"
        )
