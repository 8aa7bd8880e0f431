/** The reachable nodes of a zone. */
import { isReachableState } from '../../domain/node/rules.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import { Node } from '../../resources/node/index.ts'

/** Their names, sorted. */
export const reachableNodes = (caches: Caches, zone: string): readonly string[] =>
  caches
    .of(Node)
    .list()
    .filter(
      ({ metadata, spec, status }) =>
        metadata.deletionTimestamp === undefined && spec.zone === zone && isReachableState(status?.state),
    )
    .map(({ metadata }) => metadata.name)
    .toSorted()
