/** Nodes left in a cluster by deleted pools: their removal missed a silent API, or a restored snapshot brought them
 *  back. */
import { nodeNumberOf } from '../../../domain/node-pool/rules.ts'
import { type ClusterEffect, idOf, type Input } from './observed.ts'

/** Removes them. A node that a customer joined has no mark of a pool, and stays; so does a node that reports. */
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
