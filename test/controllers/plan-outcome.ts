/** What a plan with operations makes of an object, for tables over it. */
import type { Action } from '../../kit/reconcile/action.ts'

export function planOutcome(actions: readonly Action[]) {
  const status = actions.flatMap((action) => (action.do === 'status' ? [action.status] : []))[0] ?? {}
  const operation = actions.find((action) => action.do === 'operation')
  const started = actions.flatMap((action) => {
    const spec = action.do === 'change' ? (action.patch['spec'] as { operation?: { kind: string } }) : undefined // ours
    return spec?.operation === undefined ? [] : [spec.operation.kind]
  })
  return {
    state: status['state'],
    status,
    step: operation?.step,
    outcome: operation?.outcome,
    error: operation?.error,
    events: (operation?.events ?? []).map(({ kind, message }) => `${kind}: ${message}`),
    /** The kind of the operation that the plan begins by itself. */
    started: started[0],
    effects: actions.flatMap((action) => (action.do === 'effect' ? [action.name] : [])),
    isFinalized: actions.some((action) => action.do === 'finalized'),
  }
}
