/** Which part of the work a process of the controllers does. One process does everything until zones get a shard. A
 *  shard of zones reconciles the servers, storages and nodes of those zones; the shard of the others does the rest and
 *  all work that belongs to no zone. Each shard has its own leader. Pure. */
import type { KubeObject } from '../../kit/kube/object.ts'

export interface Shard {
  /** Names the lease of its leader. */
  readonly name: string
  readonly ownsZone: (zone: string) => boolean
  /** Operations, orphans, intents and claims: done once, for all zones. */
  readonly hasCommonWork: boolean
}

export const WHOLE: Shard = { name: 'controllers', ownsZone: () => true, hasCommonWork: true }

/** `zones:a,b` for the shard of these zones, `others:a,b` for the shard of everything else; nothing for all work.
 *  Throws on anything else. */
export function parseShard(text: string | undefined): Shard {
  if (text === undefined || text === '') return WHOLE
  const [, kind, list = ''] = /^(zones|others):([a-z0-9-]+(?:,[a-z0-9-]+)*)$/.exec(text) ?? []
  if (kind === undefined) throw new Error(`"${text}" names no shard: write zones:NAME,... or others:NAME,...`)
  const zones = new Set(list.split(','))
  if (kind === 'others') return { name: 'controllers', ownsZone: (zone) => !zones.has(zone), hasCommonWork: true }
  return {
    name: `controllers-${[...zones].sort().join('.')}`,
    ownsZone: (zone) => zones.has(zone),
    hasCommonWork: false,
  }
}

/** Whether the shard reconciles objects of a kind whose spec names their zone. */
export const inShard =
  ({ ownsZone }: Shard) =>
  (root: KubeObject): boolean =>
    ownsZone((root.spec as { readonly zone: string }).zone) // kinds with a zone only
