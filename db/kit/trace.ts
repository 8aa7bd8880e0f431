/** Statements as spans of the trace that they belong to; without a trace there are no spans. */
import type { LogEvent } from 'kysely'
import { isTraced, markFailed, startSpan } from '../../kit/sys/tracing.ts'

const NAME_CHARACTERS_MAXIMUM = 40

/** Called when a statement has ended. Its text has parameters and never their values. */
export function traceQuery({ level, query, queryDurationMillis, ...event }: LogEvent): void {
  if (!isTraced()) return
  const verb = /^\s*(\w+)/.exec(query.sql)?.[1]?.toLowerCase().slice(0, NAME_CHARACTERS_MAXIMUM) ?? 'statement'
  const span = startSpan({
    name: verb,
    kind: 'client',
    ago: queryDurationMillis,
    attributes: { 'db.system.name': 'postgresql', 'db.operation.name': verb, 'db.query.text': query.sql },
  })
  if (level === 'error' && 'error' in event) markFailed(span, event.error)
  span.end()
}
