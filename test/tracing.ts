/** Traces of the test's own process, sent to a separate collector. */
import { afterAll, beforeAll } from 'vitest'
import { silentLog } from '../kit/sys/log.ts'
import { startTraceExport, type TraceExport } from '../kit/sys/trace-export.ts'
import { type CollectedSpan, type Collector, startCollector } from './collector.ts'

/** Answers the spans that have ended since the last call. */
export function useTracing(): () => Promise<readonly CollectedSpan[]> {
  let collector: Collector
  let traces: TraceExport
  let taken = 0
  beforeAll(async () => {
    collector = await startCollector()
    const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }
    traces = await startTraceExport({ component: 'test', version: '1.2.3', environment, log: silentLog })
  })
  afterAll(async () => {
    await traces.stop()
    await collector.stop()
  })
  return async () => {
    await traces.flush()
    const spans = collector.spans.slice(taken)
    taken = collector.spans.length
    return spans
  }
}
