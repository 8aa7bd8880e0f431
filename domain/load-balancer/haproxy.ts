/** The configuration file of HAProxy for a load balancer. Pure: the same configuration always gives the same text.
 *  Every text of a customer in it has passed a pattern of `domain/load-balancer/rules.ts`; none is quoted here. */
import { parseAddress } from '../network/addresses.ts'
import {
  type Backend,
  type Frontend,
  type HealthCheck,
  IDLE_TIMEOUT_SECONDS,
  type LoadBalancerConfiguration,
  type Member,
  modeOfBackend,
} from './rules.ts'

export interface ProxyPaths {
  /** Folder with `<certificate id>.pem`, chain and key together. */
  readonly certificates: string
  /** The state of its servers before the last reload; may be missing. */
  readonly serverState: string
}

/** How many connections a machine accepts at a time. Each takes two descriptors. */
const CONNECTIONS_MAXIMUM = 8_000
/** After this, connections of an older configuration are closed. */
const DRAIN_SECONDS = 86_400
const CONNECT_SECONDS = 5
const REQUEST_SECONDS = 15
const KEEP_ALIVE_SECONDS = 60
/** Words of a line, of which the proxy accepts 64. */
const CIDRS_OF_LINE = 32
const ALGORITHMS = { round_robin: 'roundrobin', least_connections: 'leastconn', source_address: 'source' } as const
const SEND_PROXY = { none: '', v1: ' send-proxy', v2: ' send-proxy-v2' } as const

export const certificateFile = (certificateId: string): string => `${certificateId}.pem`
/** Names in the proxy's reports. A frontend and a backend of the same name are two things. */
export const frontendSection = (name: string): string => `frontend.${name}`
export const backendSection = (name: string): string => `backend.${name}`

/** The complete file, with a line end after each line. The configuration must be valid. */
export function proxyConfiguration({ frontends, backends }: LoadBalancerConfiguration, paths: ProxyPaths): string {
  const sections = [
    globalSection(paths),
    defaultsSection(),
    ...frontends.map((frontend) => frontendLines(frontend, paths)),
    ...backends.map((backend) => backendLines(backend, frontends)),
  ]
  return `${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`
}

const section = (head: string, lines: readonly string[]): readonly string[] => [
  head,
  ...lines.map((line) => `  ${line}`),
]

/** The program that starts it adds the socket for queries and reloads. */
const globalSection = ({ serverState }: ProxyPaths): readonly string[] =>
  section('global', [
    `server-state-file ${serverState}`,
    `maxconn ${CONNECTIONS_MAXIMUM}`,
    `hard-stop-after ${DRAIN_SECONDS}s`,
    'ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets',
    'ssl-default-bind-ciphers ECDHE+AESGCM:ECDHE+CHACHA20',
    'tune.ssl.default-dh-param 2048',
    'spread-checks 5',
  ])

const defaultsSection = (): readonly string[] =>
  section('defaults', [
    'load-server-state-from-file global',
    'default-server init-addr last,none',
    'retries 3',
    'option redispatch 1',
    'option dontlognull',
    `timeout connect ${CONNECT_SECONDS}s`,
    `timeout client ${IDLE_TIMEOUT_SECONDS.default}s`,
    `timeout server ${IDLE_TIMEOUT_SECONDS.default}s`,
    `timeout http-request ${REQUEST_SECONDS}s`,
    `timeout http-keep-alive ${KEEP_ALIVE_SECONDS}s`,
  ])

function frontendLines(frontend: Frontend, { certificates }: ProxyPaths): readonly string[] {
  const { name, port, mode, backend, certificateIds, allowedCidrs, inboundProxyProtocol, idleTimeoutSeconds } = frontend
  const files = certificateIds.map((id) => ` crt ${certificates}/${certificateFile(id)}`).join('')
  const options = [
    mode === 'https' ? ` ssl${files} alpn h2,http/1.1` : '',
    inboundProxyProtocol ? ' accept-proxy' : '',
  ].join('')
  return section(`frontend ${frontendSection(name)}`, [
    `bind 0.0.0.0:${port}${options}`,
    `bind [::]:${port} v6only${options}`,
    `mode ${mode === 'tcp' ? 'tcp' : 'http'}`,
    `timeout client ${idleTimeoutSeconds}s`,
    ...allowLines(allowedCidrs),
    ...(mode === 'tcp' ? [] : requestLines(mode)),
    `default_backend ${backendSection(backend)}`,
  ])
}

/** Decided by the connecting address, before a PROXY header is read: a forged header grants nothing. */
const allowLines = (cidrs: readonly string[]): readonly string[] =>
  cidrs.length === 0
    ? []
    : [
        ...linesOf(cidrs).map((some) => `acl is_allowed src ${some.join(' ')}`),
        'tcp-request connection reject if !is_allowed',
      ]

function linesOf(words: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(words.length / CIDRS_OF_LINE)
  return Array.from({ length: count }, (_, line) => words.slice(line * CIDRS_OF_LINE, (line + 1) * CIDRS_OF_LINE))
}

/** These headers are not trusted when a client sends them. */
const requestLines = (mode: 'http' | 'https'): readonly string[] => [
  'http-request del-header X-Forwarded-For',
  'option forwardfor',
  `http-request set-header X-Forwarded-Proto ${mode}`,
  'http-request set-header X-Forwarded-Port %[dst_port]',
]

function backendLines(backend: Backend, frontends: readonly Frontend[]): readonly string[] {
  const { name, algorithm, healthCheck, stickyCookie, members } = backend
  const idle = frontends.filter((one) => one.backend === name).map(({ idleTimeoutSeconds }) => idleTimeoutSeconds)
  return section(`backend ${backendSection(name)}`, [
    `mode ${modeOfBackend(backend, frontends)}`,
    `balance ${ALGORITHMS[algorithm]}`,
    ...(algorithm === 'source_address' ? ['hash-type consistent'] : []),
    `timeout server ${Math.max(...(idle.length === 0 ? [IDLE_TIMEOUT_SECONDS.default] : idle))}s`,
    `timeout check ${healthCheck.timeoutSeconds}s`,
    ...checkLines(healthCheck),
    ...(stickyCookie === undefined
      ? []
      : [`cookie ${stickyCookie.name} insert indirect nocache httponly maxlife ${stickyCookie.ttlSeconds}s`]),
    ...members.map((member) => memberLine(member, backend)),
  ])
}

const checkLines = ({ type, path, expectedStatuses }: HealthCheck): readonly string[] =>
  type === 'tcp'
    ? []
    : [
        'option httpchk',
        `http-check send meth GET uri '${path}' ver HTTP/1.1 hdr Host health-check hdr Connection close`,
        `http-check expect status ${expectedStatuses.join(',')}`,
      ]

/** Its name is its id: its statistics stay the same when it is renamed. */
function memberLine(member: Member, { healthCheck, proxyProtocol, stickyCookie }: Backend): string {
  const { id, address, port, weight, enabled } = member
  const host = parseAddress(address)?.family === 'ipv6' ? `[${address}]` : address
  const { intervalSeconds, rise, fall } = healthCheck
  return [
    `server ${id} ${host}:${port} weight ${weight} check inter ${intervalSeconds}s rise ${rise} fall ${fall}`,
    stickyCookie === undefined ? '' : ` cookie ${id}`,
    proxyProtocol === 'none' ? '' : `${SEND_PROXY[proxyProtocol]} check-send-proxy`,
    enabled ? '' : ' disabled',
  ].join('')
}
