/** The options of `npm start`: one table that defines the flags, their environment variables and the help text. A flag
 *  overrides its variable, a variable overrides the default. Pure. */
import { parseArgs } from 'node:util'

export type HypervisorChoice = 'auto' | 'qemu' | 'simulated'
export type NetworkChoice = 'auto' | 'ovn' | 'user'

export interface NodeCount {
  readonly zone: string
  readonly count: number
}

export interface Options {
  /** Undefined means `.svccloud` in the project's folder, or a temporary folder when ephemeral. */
  readonly data: string | undefined
  readonly isEphemeral: boolean
  readonly host: string
  /** 0 selects a free port; likewise for the other ports. */
  readonly port: number
  readonly operatorPort: number
  readonly kubernetesPort: number
  /** Port for S3 clients; 0 selects the port of the last start, or a free one. */
  readonly objectStoragePort: number
  readonly nodes: readonly NodeCount[]
  readonly hypervisor: HypervisorChoice
  readonly network: NetworkChoice
  /** Ports of servers that are forwarded from loopback addresses. */
  readonly loopbackPorts: readonly number[]
  /** Whether the machine itself gets a route to the servers. */
  readonly hasPublicRoute: boolean
  readonly mayInstall: boolean
  readonly hasPortal: boolean
  /** The user's own Kubernetes cluster, instead of the embedded API. */
  readonly kubeconfig: string | undefined
  /** Address of this machine for that cluster, for the webhook. Without it, writes of people are not validated before
   *  they are stored. */
  readonly webhookHost: string | undefined
  /** The user's own PostgreSQL, instead of the embedded one. */
  readonly databaseUrl: string | undefined
  /** Invoices go to a fake payment processor; no money moves. */
  readonly hasFakePayments: boolean
  /** Time of the cloud from now on, for everything in the data folder; undefined continues as before. */
  readonly testClock: TestClock | undefined
}

/** A time, or an offset from the current time. */
export type TestClock = { readonly at: Date } | { readonly laterMilliseconds: number }

/** An invalid command line; the message is one line for people. */
export class UsageError extends Error {}

interface Flag {
  readonly name: string
  /** Placeholder of the value in the help; a flag without one is a switch. */
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
  {
    name: 'object-storage-port',
    value: 'PORT',
    default: '0',
    description: 'Port of object storage, beside the API; 0 takes a free one at the first start, and keeps it',
  },
  { name: 'nodes', value: 'ZONE=N,...', default: DEFAULT_NODES, description: 'Hypervisor nodes to run in each zone' },
  {
    name: 'hypervisor',
    value: 'auto|qemu|simulated',
    default: 'auto',
    description: 'What runs the guests; auto takes QEMU when it is there',
  },
  {
    name: 'network',
    value: 'auto|ovn|user',
    default: 'auto',
    description: 'What joins the guests: Open Virtual Network, or for each one its own; auto takes OVN where it can',
  },
  {
    name: 'loopback-ports',
    value: 'PORT,...',
    default: '22,80,443',
    description: 'With OVN: ports of servers that 127.18.a.b forwards to, for each address 198.18.a.b that is in use',
  },
  {
    name: 'public-route',
    description: 'With OVN: give this machine a route to the public addresses of servers, while it runs',
  },
  { name: 'no-install', description: 'Never install missing packages' },
  { name: 'no-portal', description: 'Neither build nor serve the portal' },
  { name: 'kubeconfig', value: 'FILE', description: 'Use this Kubernetes cluster instead of the embedded API' },
  {
    name: 'webhook-host',
    value: 'ADDRESS',
    description:
      'Address of this machine that this cluster reaches: writes by kubectl are then judged before they are stored',
  },
  { name: 'database-url', value: 'URL', description: 'Use this PostgreSQL instead of the embedded one' },
  {
    name: 'fake-payments',
    description: 'Run a FAKE payment processor, which invoices are sent to: no money moves',
  },
  {
    name: 'test-clock',
    value: 'TIME',
    description: 'Set the clock of this test cloud forward for good: 2027-01-01T00:30:00Z, +31d, +2h, +5m',
  },
  { name: 'help', description: 'Show this text' },
]

const variableOf = (flag: string): string => `SVCCLOUD_${flag.toUpperCase().replaceAll('-', '_')}`

type FlagValues = ReadonlyMap<string, string>

/** npm consumes flags before `--` and passes them on as its own settings. */
function requireSeparator(environment: Readonly<Record<string, string | undefined>>): void {
  if (environment['npm_lifecycle_event'] !== 'start') return
  const flag = FLAGS.find(({ name }) => environment[`npm_config_${name.replaceAll('-', '_')}`] !== undefined)
  if (flag === undefined) return
  const example = `--${flag.name}${flag.value === undefined ? '' : ` ${flag.value}`}`
  throw new UsageError(`npm took --${flag.name} for itself. Write two dashes before the flags: npm start -- ${example}`)
}

const SWITCH_VALUES: ReadonlyMap<string, string> = new Map([
  ...['', 'false', '0', 'no'].map((text) => [text, ''] as const),
  ...['true', '1', 'yes'].map((text) => [text, 'true'] as const),
])

function switchValue(text: string, source: string): string {
  const value = SWITCH_VALUES.get(text.toLowerCase())
  if (value === undefined) throw new UsageError(`${source} must be true or false, not "${text}".`)
  return value
}

function readFlags(texts: readonly string[]): FlagValues {
  const { tokens } = parseArgs({
    args: [...texts],
    // the checks below give consistent messages
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
  const values = new Map<string, string>()
  for (const token of tokens) {
    const flag = token.kind === 'option' ? FLAGS.find(({ name }) => `--${name}` === token.rawName) : undefined
    if (token.kind !== 'option' || flag === undefined)
      throw new UsageError(`${texts[token.index]} is not known. See: npm start -- --help`)
    const { rawName, value, inlineValue } = token
    if (flag.value === undefined) values.set(flag.name, switchValue(value ?? 'true', rawName))
    else if (value === undefined || value === '' || (inlineValue !== true && value.startsWith('--')))
      throw new UsageError(`${rawName} needs a value: ${rawName} ${flag.value}`)
    else values.set(flag.name, value)
  }
  return values
}

function readVariables(environment: Readonly<Record<string, string | undefined>>): FlagValues {
  const values = new Map<string, string>()
  const read = (variable: string): string | undefined => {
    const text = environment[variable]
    if (text === '') throw new UsageError(`${variable} is empty. Give it a value, or remove it.`)
    return text
  }
  for (const flag of FLAGS) {
    const text = read(variableOf(flag.name))
    if (text === undefined) continue
    values.set(flag.name, flag.value === undefined ? switchValue(text, variableOf(flag.name)) : text)
  }
  const databaseUrl = read('DATABASE_URL')
  if (databaseUrl !== undefined && !values.has('database-url')) values.set('database-url', databaseUrl)
  return values
}

const PORT_MAXIMUM = 65_535

function parsePort(flag: string, text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > PORT_MAXIMUM)
    throw new UsageError(`--${flag} must be a port from 0 to ${PORT_MAXIMUM}, not "${text}".`)
  return port
}

const LOOPBACK_PORTS_MAXIMUM = 16
/** Higher ports leave no space for the shifted port when a port is in use. */
const LOOPBACK_PORT_MAXIMUM = 55_000

function parseLoopbackPorts(text: string): readonly number[] {
  const ports = text.split(',').map((part) => (/^\d{1,5}$/.test(part.trim()) ? Number(part) : 0))
  if (ports.some((port) => port < 1 || port > LOOPBACK_PORT_MAXIMUM) || ports.length > LOOPBACK_PORTS_MAXIMUM)
    throw new UsageError(
      `--loopback-ports must be up to ${LOOPBACK_PORTS_MAXIMUM} ports from 1 to ${LOOPBACK_PORT_MAXIMUM}, ` +
        `not "${text}".`,
    )
  return [...new Set(ports)]
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

const UNIT_MILLISECONDS: ReadonlyMap<string, number> = new Map([
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

function parseTestClock(text: string): TestClock {
  const [, count = '', unit = ''] = /^\+(\d{1,4})([dhm])$/.exec(text) ?? []
  const unitMilliseconds = UNIT_MILLISECONDS.get(unit)
  if (unitMilliseconds !== undefined) return { laterMilliseconds: Number(count) * unitMilliseconds }
  const at = new Date(/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z$/.test(text) ? text : Number.NaN)
  if (Number.isNaN(at.getTime()))
    throw new UsageError(`--test-clock must look like 2027-01-01T00:30:00Z or +31d, not "${text}".`)
  return { at }
}

const HYPERVISORS: readonly HypervisorChoice[] = ['auto', 'qemu', 'simulated']
const NETWORKS: readonly NetworkChoice[] = ['auto', 'ovn', 'user']

function parseChoice<Choice extends string>(flag: string, choices: readonly Choice[], text: string): Choice {
  const found = choices.find((name) => name === text)
  if (found === undefined) throw new UsageError(`--${flag} must be ${choices.join(', ')}, not "${text}".`)
  return found
}

/** Parses the command line and the environment. Returns 'help' when it was requested; throws UsageError for invalid
 *  input. */
export function parseOptions(
  flags: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Options | 'help' {
  requireSeparator(environment)
  const fromFlags = readFlags(flags)
  if (fromFlags.get('help') === 'true') return 'help'
  const values = new Map([...readVariables(environment), ...fromFlags])
  const text = (name: string) => values.get(name) ?? FLAGS.find((flag) => flag.name === name)?.default ?? ''
  const optional = (name: string) => text(name) || undefined
  const isEphemeral = text('ephemeral') === 'true'
  if (fromFlags.has('webhook-host') && optional('kubeconfig') === undefined)
    throw new UsageError('--webhook-host goes with --kubeconfig: the embedded Kubernetes API has its webhook anyway.')
  const hasFakePayments = text('fake-payments') === 'true'
  if (hasFakePayments && environment['SVCCLOUD_STRIPE_KEY_FILE'])
    throw new UsageError('--fake-payments stands for a payment processor: leave SVCCLOUD_STRIPE_KEY_FILE out.')
  const testClock = optional('test-clock')
  if (testClock !== undefined && (optional('kubeconfig') ?? optional('database-url')) !== undefined)
    throw new UsageError(
      '--test-clock is for a cloud that is on this machine as a whole: leave --kubeconfig and --database-url out.',
    )
  if (isEphemeral && fromFlags.has('data'))
    throw new UsageError('--ephemeral uses a temporary folder: leave --data out.')
  return {
    data: isEphemeral ? undefined : optional('data'),
    isEphemeral,
    host: text('host'),
    port: parsePort('port', text('port')),
    operatorPort: parsePort('operator-port', text('operator-port')),
    kubernetesPort: parsePort('kubernetes-port', text('kubernetes-port')),
    objectStoragePort: parsePort('object-storage-port', text('object-storage-port')),
    nodes: parseNodes(text('nodes')),
    hypervisor: parseChoice('hypervisor', HYPERVISORS, text('hypervisor')),
    network: parseChoice('network', NETWORKS, text('network')),
    loopbackPorts: parseLoopbackPorts(text('loopback-ports')),
    hasPublicRoute: text('public-route') === 'true',
    mayInstall: text('no-install') !== 'true',
    hasPortal: text('no-portal') !== 'true',
    kubeconfig: optional('kubeconfig'),
    webhookHost: optional('webhook-host'),
    databaseUrl: optional('database-url'),
    hasFakePayments,
    testClock: testClock === undefined ? undefined : parseTestClock(testClock),
  }
}

/** Expected features that the chosen options exclude, one line each. */
export function warningsOf({ kubeconfig, webhookHost }: Options): readonly string[] {
  return kubeconfig !== undefined && webhookHost === undefined
    ? [
        'WARNING: this cluster does not know the webhook, so it stores what people write with kubectl without ' +
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
    'docs/settings.md lists the other variables that npm start reads, and those that it passes on to its components.',
  ].join('\n')
}
