/** The options of `npm start`: one table that gives the flags, their environment variables and the help text.
 *  A flag wins over its variable, a variable over the default. Pure. */
import { parseArgs } from 'node:util'

export type HypervisorChoice = 'auto' | 'qemu' | 'simulated'

export interface NodeCount {
  readonly zone: string
  readonly count: number
}

export interface Options {
  /** Undefined means `.svccloud` in the project's folder, or a temporary folder when ephemeral. */
  readonly data: string | undefined
  readonly isEphemeral: boolean
  readonly host: string
  /** 0 takes a free one; so for the other ports. */
  readonly port: number
  readonly operatorPort: number
  readonly kubernetesPort: number
  readonly nodes: readonly NodeCount[]
  readonly hypervisor: HypervisorChoice
  readonly mayInstall: boolean
  /** A Kubernetes cluster of one's own, instead of the embedded API. */
  readonly kubeconfig: string | undefined
  /** Address at which that cluster reaches this machine, for the webhook; without one people's writes are not judged
   *  before they are stored. */
  readonly webhookHost: string | undefined
  /** A PostgreSQL of one's own, instead of the embedded one. */
  readonly databaseUrl: string | undefined
}

/** A command line that makes no sense; the message is one line for people. */
export class UsageError extends Error {}

interface Flag {
  readonly name: string
  /** What stands for the value in the help; a flag without one is a switch. */
  readonly value?: string
  readonly default?: string
  readonly description: string
}

const NODES_MAXIMUM = 64
const DEFAULT_NODES = 'eu-1a=2,eu-1b=1'

const FLAGS: readonly Flag[] = [
  {
    name: 'data',
    value: 'DIR',
    description: 'Folder that holds everything (default: .svccloud in the project folder)',
  },
  { name: 'ephemeral', description: 'Use a temporary folder, power the guests off at the end and remove everything' },
  { name: 'host', value: 'ADDRESS', default: '127.0.0.1', description: 'Address that the API listens on' },
  { name: 'port', value: 'PORT', default: '8080', description: 'Port of the API; 0 takes a free one' },
  {
    name: 'operator-port',
    value: 'PORT',
    default: '8081',
    description: 'Port of the operator listener, always on 127.0.0.1',
  },
  {
    name: 'kubernetes-port',
    value: 'PORT',
    default: '6443',
    description: 'Port of the embedded Kubernetes API, always on 127.0.0.1',
  },
  { name: 'nodes', value: 'ZONE=N,...', default: DEFAULT_NODES, description: 'Hypervisor nodes to run in each zone' },
  {
    name: 'hypervisor',
    value: 'auto|qemu|simulated',
    default: 'auto',
    description: 'What runs the guests; auto takes QEMU when it is there',
  },
  { name: 'no-install', description: 'Never install missing packages' },
  { name: 'kubeconfig', value: 'FILE', description: 'Use this Kubernetes cluster instead of the embedded API' },
  {
    name: 'webhook-host',
    value: 'ADDRESS',
    description:
      'Address of this machine that this cluster reaches: writes by kubectl are then judged before they are stored',
  },
  { name: 'database-url', value: 'URL', description: 'Use this PostgreSQL instead of the embedded one' },
  { name: 'help', description: 'Show this text' },
]

const variableOf = (flag: string): string => `SVCCLOUD_${flag.toUpperCase().replaceAll('-', '_')}`

type Given = ReadonlyMap<string, string>

const SWITCH_VALUES: ReadonlyMap<string, string> = new Map([
  ...['', 'false', '0', 'no'].map((text) => [text, ''] as const),
  ...['true', '1', 'yes'].map((text) => [text, 'true'] as const),
])

function switchValue(text: string, source: string): string {
  const value = SWITCH_VALUES.get(text.toLowerCase())
  if (value === undefined) throw new UsageError(`${source} must be true or false, not "${text}".`)
  return value
}

function readFlags(texts: readonly string[]): Given {
  const { tokens } = parseArgs({
    args: [...texts],
    // the checks below name what is wrong in the words of the other refusals
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: Object.fromEntries(
      FLAGS.map(({ name, value }) => [
        name,
        { type: value === undefined ? ('boolean' as const) : ('string' as const) },
      ]),
    ),
  })
  const given = new Map<string, string>()
  for (const token of tokens) {
    const flag = token.kind === 'option' ? FLAGS.find(({ name }) => `--${name}` === token.rawName) : undefined
    if (token.kind !== 'option' || flag === undefined)
      throw new UsageError(`${texts[token.index]} is not known. See: npm start -- --help`)
    const { rawName, value, inlineValue } = token
    if (flag.value === undefined) given.set(flag.name, switchValue(value ?? 'true', rawName))
    else if (value === undefined || value === '' || (inlineValue !== true && value.startsWith('--')))
      throw new UsageError(`${rawName} needs a value: ${rawName} ${flag.value}`)
    else given.set(flag.name, value)
  }
  return given
}

function readVariables(environment: Readonly<Record<string, string | undefined>>): Given {
  const given = new Map<string, string>()
  for (const flag of FLAGS) {
    const text = environment[variableOf(flag.name)]
    if (text === undefined || text === '') continue
    given.set(flag.name, flag.value === undefined ? switchValue(text, variableOf(flag.name)) : text)
  }
  const databaseUrl = environment['DATABASE_URL']
  if (databaseUrl && !given.has('database-url')) given.set('database-url', databaseUrl)
  return given
}

const PORT_MAXIMUM = 65_535

function parsePort(flag: string, text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > PORT_MAXIMUM)
    throw new UsageError(`--${flag} must be a port from 0 to ${PORT_MAXIMUM}, not "${text}".`)
  return port
}

/** `eu-1a=2,eu-1b=1`: at least one node, at most NODES_MAXIMUM, no zone twice. */
export function parseNodes(text: string): readonly NodeCount[] {
  const nodes = text.split(',').map((part) => {
    const [, zone = '', count = ''] = /^([a-z0-9](?:[-a-z0-9]{0,40}[a-z0-9])?)=(\d{1,3})$/.exec(part.trim()) ?? []
    if (zone === '') throw new UsageError(`--nodes must look like ${DEFAULT_NODES}, not "${text}".`)
    return { zone, count: Number(count) }
  })
  const total = nodes.reduce((sum, { count }) => sum + count, 0)
  if (new Set(nodes.map(({ zone }) => zone)).size < nodes.length) throw new UsageError('--nodes names a zone twice.')
  if (total < 1 || total > NODES_MAXIMUM)
    throw new UsageError(`--nodes must ask for 1 to ${NODES_MAXIMUM} nodes, not ${total}.`)
  return nodes
}

const HYPERVISORS: readonly HypervisorChoice[] = ['auto', 'qemu', 'simulated']

function parseHypervisor(text: string): HypervisorChoice {
  const found = HYPERVISORS.find((name) => name === text)
  if (found === undefined) throw new UsageError(`--hypervisor must be ${HYPERVISORS.join(', ')}, not "${text}".`)
  return found
}

/** Reads the command line and the environment. Answers 'help' when that was asked for; throws UsageError for
 *  nonsense. */
export function parseOptions(
  flags: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Options | 'help' {
  const fromFlags = readFlags(flags)
  if (fromFlags.get('help') === 'true') return 'help'
  const given = new Map([...readVariables(environment), ...fromFlags])
  const text = (name: string) => given.get(name) ?? FLAGS.find((flag) => flag.name === name)?.default ?? ''
  const optional = (name: string) => text(name) || undefined
  const isEphemeral = text('ephemeral') === 'true'
  if (fromFlags.has('webhook-host') && optional('kubeconfig') === undefined)
    throw new UsageError('--webhook-host goes with --kubeconfig: the embedded Kubernetes API has its webhook anyway.')
  if (isEphemeral && fromFlags.has('data'))
    throw new UsageError('--ephemeral uses a temporary folder: leave --data out.')
  return {
    data: isEphemeral ? undefined : optional('data'),
    isEphemeral,
    host: text('host'),
    port: parsePort('port', text('port')),
    operatorPort: parsePort('operator-port', text('operator-port')),
    kubernetesPort: parsePort('kubernetes-port', text('kubernetes-port')),
    nodes: parseNodes(text('nodes')),
    hypervisor: parseHypervisor(text('hypervisor')),
    mayInstall: text('no-install') !== 'true',
    kubeconfig: optional('kubeconfig'),
    webhookHost: optional('webhook-host'),
    databaseUrl: optional('database-url'),
  }
}

/** What the chosen options leave out that people would expect, one line each. */
export function warningsOf({ kubeconfig, webhookHost }: Options): readonly string[] {
  return kubeconfig !== undefined && webhookHost === undefined
    ? [
        'WARNING: this cluster is not told of the webhook, so it stores what people write with kubectl without ' +
          'asking the platform: quotas, names, protection and what else the API refuses are judged only afterwards. ' +
          'What is not allowed is not carried out, and the object says so in its conditions; a protected server that ' +
          'is deleted stays until its protection is lifted. --webhook-host ADDRESS has writes judged before.',
      ]
    : []
}

const FLAG_COLUMN = 40

export function helpText(): string {
  const line = (flag: Flag) => {
    const left = `  --${flag.name}${flag.value === undefined ? '' : ` ${flag.value}`}`.padEnd(FLAG_COLUMN)
    return `${left}${flag.description}${flag.default === undefined ? '' : ` (default: ${flag.default})`}`
  }
  return [
    'Starts svccloud on this machine: npm start -- [flags]',
    '',
    ...FLAGS.map(line),
    '',
    `Each flag is also an environment variable: --operator-port is ${variableOf('operator-port')}, switches take ` +
      'true or false.',
    'DATABASE_URL is read when neither --database-url nor SVCCLOUD_DATABASE_URL is given.',
    'Passed on to the components: SVCCLOUD_PUBLIC_URL, SVCCLOUD_SMTP_URL, SVCCLOUD_SMTP_ALLOW_PLAIN, ' +
      'SVCCLOUD_MAIL_FROM, SVCCLOUD_TRUSTED_PROXIES, SVCCLOUD_LOG_LEVEL,',
    'SVCCLOUD_GUEST_NETWORK (outbound or isolated), SVCCLOUD_IMAGE_CACHE (folder of built guest images, to share ' +
      'them between data folders),',
    'SVCCLOUD_SHARED_VOLUMES (none: the nodes of a zone share no storage), SVCCLOUD_MIGRATION_BANDWIDTH (MiB per ' +
      'second for one move),',
    'SVCCLOUD_SEALING_KEYS, SVCCLOUD_IDENTITY_PROVIDERS, SVCCLOUD_SUPPORT_READ_NEEDS_CONSENT, ' +
      'SVCCLOUD_AUDIT_VERIFY_SECONDS, SVCCLOUD_AUDIT_RETENTION_DAYS.',
  ].join('\n')
}
