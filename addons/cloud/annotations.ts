/** Settings of a service's load balancer in its annotations. Pure. */
import { ALGORITHMS, IDLE_TIMEOUT_SECONDS, PROXY_PROTOCOLS } from '../../domain/load-balancer/rules.ts'
import type { ServiceObject } from './objects.ts'

const PREFIX = 'svccloud.dev/load-balancer-'
const NAMES = ['algorithm', 'idle-timeout-seconds', 'internal', 'plan', 'proxy-protocol'] as const
type Name = (typeof NAMES)[number]

export interface Annotations {
  readonly algorithm: (typeof ALGORITHMS)[number]
  readonly proxyProtocol: (typeof PROXY_PROTOCOLS)[number]
  readonly idleTimeoutSeconds: number
  readonly isInternal: boolean
  /** Undefined: the cheapest suitable plan. */
  readonly plan: string | undefined
}

/** The parsed settings, and their faults for people; none when all are valid. */
export function readAnnotations({ metadata, spec }: ServiceObject): {
  readonly annotations: Annotations
  readonly faults: readonly string[]
} {
  const { annotations: texts = {} } = metadata
  const faults = Object.keys(texts)
    .filter((key) => key.startsWith(PREFIX) && !NAMES.some((name) => key === `${PREFIX}${name}`))
    .map((key) => `annotation ${key} is unknown: known are ${NAMES.map((name) => PREFIX + name).join(', ')}`)
  const text = (name: Name): string | undefined => texts[`${PREFIX}${name}`]
  const oneOf = <Value extends string>(name: Name, values: readonly Value[], otherwise: Value): Value => {
    const found = values.find((value) => value === (text(name) ?? otherwise))
    if (found === undefined) faults.push(`annotation ${PREFIX}${name} is one of ${values.join(', ')}`)
    return found ?? otherwise
  }
  const seconds = Number(text('idle-timeout-seconds') ?? IDLE_TIMEOUT_SECONDS.default)
  const { least, most } = IDLE_TIMEOUT_SECONDS
  if (!Number.isInteger(seconds) || seconds < least || seconds > most)
    faults.push(`annotation ${PREFIX}idle-timeout-seconds is a whole number from ${least} to ${most}`)
  const annotations = {
    algorithm: oneOf('algorithm', ALGORITHMS, spec.sessionAffinity === 'ClientIP' ? 'source_address' : 'round_robin'),
    proxyProtocol: oneOf('proxy-protocol', PROXY_PROTOCOLS, 'none'),
    idleTimeoutSeconds: seconds,
    isInternal: oneOf('internal', ['true', 'false'], 'false') === 'true',
    plan: text('plan'),
  }
  return { annotations, faults }
}
