"""What was used last, up to a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


class Cache(Generic[Key, Item]):
    """The items last used, up to a sum of weights; safe for several threads.

    max_weight : what all items may weigh together; one alone may weigh more
    weigh : the weight of an item
    """

    def __init__(self, max_weight: int, weigh: Callable[[Item], int]) -> None:
        self._max_weight = max_weight
        self._weigh = weigh
        self._weight = 0
        self._items: OrderedDict[Key, Item] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Item | None:
        with self._lock:
            item = self._items.get(key)
            if item is not None:
                self._items.move_to_end(key)
            return item

    def put(self, key: Key, item: Item) -> None:
        with self._lock:
            if key not in self._items:
                self._items[key] = item
                self._weight += self._weigh(item)
            while self._weight > self._max_weight and len(self._items) > 1:
                self._weight -= self._weigh(self._items.popitem(last=False)[1])

    def find(self, key: Key, make: Callable[[], Item]) -> Item:
        """An item, made if it is not there; two threads may make it at once, to the same effect."""
        item = self.get(key)
        if item is None:
            item = make()
            self.put(key, item)
        return item

    def clear(self) -> None:
        with self._lock:
            self._items.clear()
            self._weight = 0
