/** The trace that the work on a root belongs to. A root with an operation has it in the operation's stanza. Objects
 *  that a plan creates for such a root get it as an annotation, which the controllers of those objects follow until the
 *  operation's deadline. So one trace runs from a request to the guest, through every process, even if processes
 *  end. */
import type { KubeObject } from '../kube/object.ts'
import { currentTraceparent } from '../sys/tracing.ts'
import { activeOperation, stanzaOf } from './operation.ts'

export const TRACE_ANNOTATION = 'svccloud.dev/trace'

export interface RootTrace {
  readonly traceparent: string
  /** Of the operation, as it was written there. */
  readonly until: string
}

/** The trace of the current work; undefined when there is none, or it is over. */
export function traceOf(root: KubeObject, now: Date): RootTrace | undefined {
  const stanza = activeOperation(root)
  if (stanza !== undefined)
    return stanza.traceparent === undefined ? undefined : { traceparent: stanza.traceparent, until: stanza.deadlineAt }
  const [traceparent = '', until = ''] = root.metadata.annotations?.[TRACE_ANNOTATION]?.split(';until=') ?? []
  return now.getTime() < Date.parse(until) ? { traceparent, until } : undefined
}

/** For objects created for the root; nothing when nothing is traced. */
export const traceAnnotation = (trace: RootTrace | undefined): Readonly<Record<string, string>> =>
  trace === undefined ? {} : { [TRACE_ANNOTATION]: `${trace.traceparent};until=${trace.until}` }

/** Part of a patch that writes a stanza: the active trace, and never that of the previous operation. */
export const ownTrace = (): { readonly traceparent: string | null } => ({ traceparent: currentTraceparent() ?? null })

/** The kind of the operation that the patch of a root writes into its stanza; undefined when it starts none. */
export function operationBegunBy(root: KubeObject, patch: Readonly<Record<string, unknown>>): string | undefined {
  const begun = stanzaOf({ ...root, spec: patch['spec'] })
  return begun?.id === undefined || begun.id === stanzaOf(root)?.id ? undefined : begun.kind
}

/** The patch with the active trace in its stanza. */
export function withOwnTrace(patch: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const spec = patch['spec'] as { readonly operation: object } // it starts an operation
  return { ...patch, spec: { ...spec, operation: { ...spec.operation, ...ownTrace() } } }
}
