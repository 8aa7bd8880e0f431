/** Network edges for requests: complete, and as lists show them. */
import { edgeChanges } from '../../../changes/edge.ts'
import {
  Edge,
  type EdgeItem,
  type EdgeSpec,
  type EdgeStatus,
  type EdgeView,
  toEdgeItem,
  toEdgeView,
} from '../../../resources/edge/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import { type ObjectParts, type Objects, openObjects } from '../../kit/plain/objects.ts'

export interface Edges extends OperatedObjects<EdgeSpec, EdgeStatus, EdgeView, ReturnType<typeof edgeChanges.factsOf>> {
  /** Without machines and members. */
  readonly items: Objects<EdgeSpec, EdgeStatus, EdgeItem>
}

export function openEdges(parts: ObjectParts): Edges {
  const noun = { name: 'edge', title: 'edge', resource: Edge, surroundingsOf: () => ({}) } as const
  return {
    ...openOperated(parts, { ...noun, toView: toEdgeView, factsOf: edgeChanges.factsOf }),
    items: openObjects(parts, { ...noun, toView: toEdgeItem }),
  }
}
