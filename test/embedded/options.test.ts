import { describe, expect, it } from 'vitest'
import { helpText, parseNodes, parseOptions, UsageError } from '../../embedded/options.ts'

const parsed = (flags: readonly string[], environment: Record<string, string> = {}) => {
  const options = parseOptions(flags, environment)
  if (options === 'help') throw new Error('help was not asked for')
  return options
}

it('has defaults for a first look', () => {
  expect(parsed([])).toEqual({
    data: undefined,
    isEphemeral: false,
    host: '127.0.0.1',
    port: 8080,
    operatorPort: 8081,
    kubernetesPort: 6443,
    objectStoragePort: 0,
    nodes: [
      { zone: 'eu-1a', count: 2 },
      { zone: 'eu-1b', count: 1 },
    ],
    hypervisor: 'auto',
    network: 'auto',
    loopbackPorts: [22, 80, 443],
    hasPublicRoute: false,
    mayInstall: true,
    hasPortal: true,
    kubeconfig: undefined,
    webhookHost: undefined,
    databaseUrl: undefined,
    hasFakePayments: false,
    testClock: undefined,
  })
})

it('takes a clock for tests as an instant or as so much later, of a cloud on this machine only', () => {
  expect(parsed(['--test-clock', '2027-01-01T00:30:00Z']).testClock).toEqual({ at: new Date('2027-01-01T00:30:00Z') })
  expect(parsed(['--test-clock', '+31d']).testClock).toEqual({ laterMilliseconds: 31 * 86_400_000 })
  for (const text of ['tomorrow', '31d', '+1y', '2027-13-01T00:00:00Z', '-1d'])
    expect(() => parsed([`--test-clock=${text}`])).toThrow('--test-clock must look like')
  for (const other of ['--kubeconfig', '--database-url'])
    expect(() => parsed(['--test-clock', '+1d', other, 'x'])).toThrow('leave --kubeconfig and --database-url out')
})

it('has either a fake payment processor or another one', () => {
  expect(parsed(['--fake-payments']).hasFakePayments).toBe(true)
  expect(() => parsed(['--fake-payments'], { SVCCLOUD_STRIPE_KEY_FILE: '/key' })).toThrow('leave SVCCLOUD_STRIPE')
})

it('says where flags belong that npm took for itself', () => {
  const npm = { npm_lifecycle_event: 'start' }
  expect(() => parsed(['0'], { ...npm, npm_config_port: 'true' })).toThrow(
    'npm took --port for itself. Write two dashes before the flags: npm start -- --port PORT',
  )
  expect(() => parsed([], { ...npm, npm_config_ephemeral: 'true' })).toThrow('npm start -- --ephemeral')
  expect(parsed(['--port', '0'], npm).port).toBe(0)
  // Settings of npm that are nobody's flag here.
  expect(parsed([], { ...npm, npm_config_cache: '/x' }).port).toBe(8080)
})

describe('where a value comes from', () => {
  it.each([
    ['a flag', ['--port', '1'], {}, 1],
    ['a flag with =', ['--port=2'], {}, 2],
    ['its variable', [], { SVCCLOUD_PORT: '3' }, 3],
    ['the flag before the variable', ['--port', '4'], { SVCCLOUD_PORT: '3' }, 4],
  ])('%s', (_name, flags, environment, port) => expect(parsed(flags, environment).port).toBe(port))

  it('refuses a variable that is empty', () => {
    for (const variable of ['SVCCLOUD_PORT', 'SVCCLOUD_KUBECONFIG', 'SVCCLOUD_EPHEMERAL', 'SVCCLOUD_DATABASE_URL'])
      expect(() => parsed([], { [variable]: '' })).toThrow(`${variable} is empty. Give it a value, or remove it.`)
    expect(() => parsed([], { DATABASE_URL: '' })).toThrow('DATABASE_URL is empty. Give it a value, or remove it.')
  })

  it('knows DATABASE_URL as the last resort', () => {
    expect(parsed([], { DATABASE_URL: 'a' }).databaseUrl).toBe('a')
    expect(parsed([], { DATABASE_URL: 'a', SVCCLOUD_DATABASE_URL: 'b' }).databaseUrl).toBe('b')
    expect(parsed(['--database-url', 'c'], { DATABASE_URL: 'a', SVCCLOUD_DATABASE_URL: 'b' }).databaseUrl).toBe('c')
  })

  it('reads switches from variables', () => {
    expect(
      parsed([], { SVCCLOUD_NO_INSTALL: 'true', SVCCLOUD_NO_PORTAL: 'yes', SVCCLOUD_EPHEMERAL: '1' }),
    ).toMatchObject({
      mayInstall: false,
      hasPortal: false,
      isEphemeral: true,
    })
    expect(parsed([], { SVCCLOUD_NO_INSTALL: 'false' }).mayInstall).toBe(true)
    expect(parsed(['--no-install=false'], { SVCCLOUD_NO_INSTALL: 'true' }).mayInstall).toBe(true)
  })

  it('lets --ephemeral win over a folder from the environment', () => {
    expect(parsed(['--ephemeral'], { SVCCLOUD_DATA: '/somewhere' }).data).toBeUndefined()
  })
})

it.each([
  [['--prot', '80'], '--prot is not known'],
  [['--webhook-host', '10.0.0.1'], '--webhook-host goes with --kubeconfig'],
  [['8080'], '8080 is not known'],
  [['--port'], '--port needs a value'],
  [['--data', '--ephemeral'], '--data needs a value'],
  [['--port', 'http'], '--port must be a port'],
  [['--port', '65536'], '--port must be a port'],
  [['--loopback-ports', '22,0'], '--loopback-ports must be'],
  [['--loopback-ports', '22,60000'], '--loopback-ports must be'],
  [['--hypervisor', 'xen'], '--hypervisor must be auto, qemu, simulated'],
  [['--nodes', 'eu-1a'], '--nodes must look like'],
  [['--nodes', 'eu-1a=0'], '1 to 64 nodes, not 0'],
  [['--nodes', 'eu-1a=60,eu-1b=60'], '1 to 64 nodes, not 120'],
  [['--nodes', 'eu-1a=1,eu-1a=1'], 'a zone twice'],
  [['--ephemeral', '--data', '/x'], 'leave --data out'],
  [['--ephemeral=perhaps'], 'must be true or false'],
])('refuses %j in one line', (flags, text) => {
  const refused = () => parseOptions(flags, {})
  expect(refused).toThrow(UsageError)
  expect(refused).toThrow(text)
  expect(refused).not.toThrow('\n')
})

it('lists every flag in the help', () => {
  expect(parseOptions(['--help'], {})).toBe('help')
  for (const flag of [
    'data',
    'ephemeral',
    'host',
    'port',
    'operator-port',
    'kubernetes-port',
    'nodes',
    'hypervisor',
    'no-install',
    'no-portal',
    'kubeconfig',
    'database-url',
    'help',
  ]) {
    expect(helpText()).toContain(`--${flag}`)
  }
})

it('counts nodes per zone', () =>
  expect(parseNodes('a=1, b=3')).toEqual([
    { zone: 'a', count: 1 },
    { zone: 'b', count: 3 },
  ]))
