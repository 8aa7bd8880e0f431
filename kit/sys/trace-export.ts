/** Sends spans to the collector that the standard variables of OpenTelemetry name, as JSON over OTLP/HTTP. Off by
 *  default. Only `main` files start it; the SDK is loaded only when it is on. */
import { diag, DiagLogLevel, context, trace } from '@opentelemetry/api'
import type { Sampler } from '@opentelemetry/sdk-trace'
import type { Logger } from './log.ts'

export interface TraceExport {
  /** Sends the pending spans. */
  flush(): Promise<void>
  /** Sends the pending spans, and stops tracing. */
  stop(): Promise<void>
}

export interface TraceExportOptions {
  /** The service name is `svccloud-<component>`, unless OTEL_SERVICE_NAME sets another one. */
  readonly component: string
  readonly version: string
  /** Further attributes of the resource. */
  readonly attributes?: Readonly<Record<string, string>>
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly log: Logger
}

/** The longest time for which an unresponsive collector delays the end of a process. */
const EXPORT_TIMEOUT_MILLISECONDS = 5_000
const ATTRIBUTE_CHARACTERS_MAXIMUM = 2_048
const OFF: TraceExport = { flush: async () => {}, stop: async () => {} }

/** Undefined where traces are off. */
function urlOf(environment: TraceExportOptions['environment']): string | undefined {
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || environment['OTEL_TRACES_EXPORTER'] === 'none')
    return undefined
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own, OTEL_EXPORTER_OTLP_ENDPOINT: shared } = environment
  return own || (shared ? `${shared.replace(/\/$/, '')}/v1/traces` : undefined)
}

/** Headers, certificates and compression of the exporter, and attributes of the resource, have standard variables as
 *  well: the library reads them. Throws for an unknown sampler, and for an invalid endpoint URL. */
export async function startTraceExport({
  component,
  version,
  attributes = {},
  environment,
  log,
}: TraceExportOptions): Promise<TraceExport> {
  const url = urlOf(environment)
  if (url === undefined) return OFF
  if (!URL.canParse(url)) throw new TypeError(`OTEL_EXPORTER_OTLP_ENDPOINT must be a URL such as http://127.0.0.1:4318`)
  const [sdk, { OTLPTraceExporter }, { AsyncLocalStorageContextManager }, resources] = await Promise.all([
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/context-async-hooks'),
    import('@opentelemetry/resources'),
  ])
  const report = (message: string) => log.warn('traces are not exported', { detail: message })
  const quiet = () => {}
  diag.setLogger(
    { error: report, warn: report, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: EXPORT_TIMEOUT_MILLISECONDS })
  const provider = new sdk.TracerProvider({
    resource: resources
      .defaultResource()
      .merge(
        resources.resourceFromAttributes({
          'service.name': `svccloud-${component}`,
          'service.version': version,
          ...attributes,
        }),
      )
      .merge(resources.detectResources({ detectors: [resources.envDetector] })),
    sampler: samplerOf(sdk, environment),
    spanLimits: { attributeValueLengthLimit: ATTRIBUTE_CHARACTERS_MAXIMUM },
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter, exportTimeoutMillis: EXPORT_TIMEOUT_MILLISECONDS })],
  })
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(provider)
  log.info('traces are exported')
  return {
    flush: () => provider.forceFlush({ timeoutMillis: EXPORT_TIMEOUT_MILLISECONDS }),
    async stop() {
      await provider.shutdown().catch((error: unknown) => report(String(error)))
      trace.disable()
      context.disable()
      diag.disable()
    },
  }
}

/** By the names of the specification. */
function samplerOf(
  { AlwaysOffSampler, AlwaysOnSampler, ParentBasedSampler, TraceIdRatioBasedSampler }: Sdk,
  environment: TraceExportOptions['environment'],
): Sampler {
  const name = environment['OTEL_TRACES_SAMPLER'] || 'parentbased_always_on'
  const ratio = Number(environment['OTEL_TRACES_SAMPLER_ARG'] || 1)
  if (!(ratio >= 0 && ratio <= 1)) throw new RangeError('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1')
  const samplers: Readonly<Record<string, () => Sampler>> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  }
  const isParentBased = name.startsWith('parentbased_')
  const root = samplers[isParentBased ? name.slice('parentbased_'.length) : name]?.()
  if (root === undefined) {
    const known = Object.keys(samplers).flatMap((each) => [each, `parentbased_${each}`])
    throw new RangeError(`OTEL_TRACES_SAMPLER must be one of ${known.join(', ')}`)
  }
  return isParentBased ? new ParentBasedSampler({ root }) : root
}

type Sdk = typeof import('@opentelemetry/sdk-trace')
