/** Which trace the work on a root belongs to. A root with an operation has it in the operation's stanza; whatever a
 *  plan makes of such a root gets it as an annotation, which the controllers of those objects follow until the
 *  operation's deadline. So one trace leads from a request to the guest, through every process, and through their
 *  ends. */
import type { KubeObject } from '../kube/object.ts'
import { currentTraceparent } from '../sys/tracing.ts'
import { activeOperation, stanzaOf } from './operation.ts'

export const TRACE_ANNOTATION = 'svccloud.dev/trace'

export interface RootTrace {
  readonly traceparent: string
  /** Of the operation, as it was written there. */
  readonly until: string
}

/** The trace of what is under way; undefined when there is none, or it is over. */
export function traceOf(root: KubeObject, now: Date): RootTrace | undefined {
  const stanza = activeOperation(root)
  if (stanza !== undefined)
    return stanza.traceparent === undefined ? undefined : { traceparent: stanza.traceparent, until: stanza.deadlineAt }
  const [traceparent = '', until = ''] = root.metadata.annotations?.[TRACE_ANNOTATION]?.split(';until=') ?? []
  return now.getTime() < Date.parse(until) ? { traceparent, until } : undefined
}

/** For what is made of the root; nothing where nothing is traced. */
export const traceAnnotation = (trace: RootTrace | undefined): Readonly<Record<string, string>> =>
  trace === undefined ? {} : { [TRACE_ANNOTATION]: `${trace.traceparent};until=${trace.until}` }

/** Goes into a patch that writes a stanza: the active trace, and never that of the operation before. */
export const ownTrace = (): { readonly traceparent: string | null } => ({ traceparent: currentTraceparent() ?? null })

/** The kind of the operation that the patch of a root puts into its stanza; undefined when it begins none. */
export function operationBegunBy(root: KubeObject, patch: Readonly<Record<string, unknown>>): string | undefined {
  const begun = stanzaOf({ ...root, spec: patch['spec'] })
  return begun?.id === undefined || begun.id === stanzaOf(root)?.id ? undefined : begun.kind
}

/** The patch with the active trace in its stanza. */
export function withOwnTrace(patch: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const spec = patch['spec'] as { readonly operation: object } // it begins an operation
  return { ...patch, spec: { ...spec, operation: { ...spec.operation, ...ownTrace() } } }
}
