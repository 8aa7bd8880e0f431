/** A value outside of React that components follow. */
import { useSyncExternalStore } from 'react'

export interface Store<Value> {
  readonly get: () => Value
  readonly set: (value: Value) => void
  /** The value, in a component. */
  readonly use: () => Value
}

export function storeOf<Value>(initial: Value): Store<Value> {
  let current = initial
  const listeners = new Set<() => void>()
  const get = (): Value => current
  const subscribe = (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  return {
    get,
    set: (value) => {
      if (Object.is(value, current)) return
      current = value
      for (const listener of listeners) listener()
    },
    use: () => useSyncExternalStore(subscribe, get, get),
  }
}
