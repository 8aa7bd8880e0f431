/** The reconciler of Observations: answers each question once, by probing the other node from this host. */
import type { Action } from '../../kit/reconcile/action.ts'
import type { Reconciler } from '../../kit/reconcile/reconciler.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { Observation, type ObservationSpec, type ObservationStatus } from '../../resources/instance/index.ts'
import type { ProbeHost } from './host-probe.ts'

/** One probe for each request, which is its input: another request may have another answer. */
export const planObservation = ({ spec, status }: KubeObject<ObservationSpec, ObservationStatus>): readonly Action[] =>
  status?.requestedAt === spec.requestedAt
    ? []
    : [{ do: 'effect', name: 'look', input: { requestedAt: spec.requestedAt } }]

export function observationReconciler(look: ProbeHost): Reconciler<ObservationSpec, ObservationStatus, undefined> {
  return {
    name: 'observation',
    type: Observation,
    watches: [],
    observe: () => undefined,
    plan: planObservation,
    effects: {
      look: async (_input, { spec: { endpoint, requestedAt } }) => ({
        status: { requestedAt, ...(await look(endpoint)) },
      }),
    },
  }
}
