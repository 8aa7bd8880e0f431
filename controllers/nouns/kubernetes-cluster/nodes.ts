/** Nodes that are left in a cluster of pools that have gone: one whose API was silent meanwhile, or that came back with
 *  a snapshot. */
import { nodeNumberOf } from '../../../domain/node-pool/rules.ts'
import { type ClusterEffect, idOf, type Input } from './observed.ts'

/** Takes them out. What customers joined themselves bears no mark of a pool, and stays; so does one that reports. */
export function forgettingNodes(input: Input): readonly ClusterEffect[] {
  const { host, pools } = input.observed
  const nodes = 'obstacle' in host ? [] : host.nodes
  const names = nodes
    .filter(
      ({ name, isReady, marked }) =>
        marked !== '' &&
        !isReady &&
        !pools.some(
          ({ metadata, spec }) => nodeNumberOf({ name: spec.name, uid: metadata.uid ?? '' }, name) !== undefined,
        ),
    )
    .map(({ name }) => name)
  return names.length === 0 ? [] : [{ do: 'effect', name: 'forgetNodes', input: { ...idOf(input), names } }]
}
