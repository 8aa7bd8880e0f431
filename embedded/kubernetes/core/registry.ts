/** The resources that exist now: built-in ones and those of CustomResourceDefinitions. */
import type { Definition } from './definition.ts'

export interface Registry {
  find(group: string, version: string, resource: string): Definition | undefined
  findKind(group: string, version: string, kind: string): Definition | undefined
  /** The definition for storing objects of this storage key. */
  ofStored(storageKey: string): Definition | undefined
  all(): readonly Definition[]
  /** Replaces the resources of one CustomResourceDefinition; an empty list removes them. */
  setCustom(name: string, definitions: readonly Definition[]): void
  /** Increases with every change, for ETags and caches. */
  epoch(): number
}

export function openRegistry(builtIn: readonly Definition[]): Registry {
  const custom = new Map<string, readonly Definition[]>()
  let all: readonly Definition[] = builtIn
  let byPath = indexed(all)
  let epoch = 0
  return {
    find: (group, version, resource) => byPath.get(`${group}/${version}/${resource}`),
    findKind: (group, version, kind) =>
      all.find((one) => one.kind === kind && one.group === group && (version === '' || one.version === version)),
    ofStored: (storageKey) =>
      all.find((one) => one.storageKey === storageKey && one.version === one.storageVersion && !one.hooks.fromStored) ??
      all.find((one) => one.storageKey === storageKey),
    all: () => all,
    setCustom(name, definitions) {
      custom.delete(name)
      if (definitions.length > 0) custom.set(name, definitions)
      all = [...builtIn, ...[...custom.values()].flat()]
      byPath = indexed(all)
      epoch++
    },
    epoch: () => epoch,
  }
}

const indexed = (all: readonly Definition[]): ReadonlyMap<string, Definition> =>
  new Map(all.map((one) => [`${one.group}/${one.version}/${one.resource}`, one]))
