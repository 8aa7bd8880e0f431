/** The mistakes that people make in their first hour, and the one sentence that each of them gets. Whoever changes a
 *  text  reads it here. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defined } from '../domain/defined.ts'
import { lockDataFolder, prepareDataFolder } from '../embedded/kit/data-folder.ts'
import { parseOptions } from '../embedded/options.ts'
import { probePort, takePort } from '../embedded/kit/ports.ts'
import { PUBLIC_KEY } from './apiserver/cloud.ts'
import { useWorld } from './cli/command-line.ts'

const shared = useWorld()
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-mistakes-'))
  const { owner, cloud } = shared.world
  const server = { zone: cloud.zone, hostname: 'web', plan: 'tiny', template: 'tiny-linux', ssh_keys: [PUBLIC_KEY] }
  await owner.send('POST', '/v1/servers', { body: server })
})
afterAll(() => rm(folder, { recursive: true, force: true }))

interface Told {
  readonly ended: number | string
  readonly text: string
}

/** A command line, with the exit code that it ends with. Ids of requests are left out. */
const svccloud =
  (...line: string[]) =>
  async (): Promise<Told> => {
    const { code, error } = await shared.world.svccloud(line)
    return { ended: code, text: error.replace(/^svccloud: /, '').replace(/(, |\n {2})request [0-9a-f-]{36}/, '') }
  }
const CREATE = ['server', 'create', '--hostname', 'db', '--plan', 'tiny', '--template', 'tiny-linux', '--zone']
const create = (zone: string, ...more: string[]) => svccloud(...CREATE, zone, ...more)

/** What is another one in each run. */
const withoutNames = (text: string): string =>
  text
    .replaceAll(folder, 'DIR')
    .replace(/^Port \d+/, 'Port PORT')
    .replace(/by \S.* \(process \d+\)/, 'by NAME (process ID)')

/** Something of `npm start` that refuses. */
const refusedStart = (work: () => unknown) => async (): Promise<Told> => {
  try {
    await work()
  } catch (error) {
    return { ended: 'refused', text: error instanceof Error ? withoutNames(error.message) : '' }
  }
  return { ended: 'started', text: '' }
}

/** A request over HTTP. */
const request =
  (headers: Record<string, string>, body?: object, path = '/v1/servers') =>
  async (): Promise<Told> => {
    const reply = await shared.world.cloud.send(body === undefined ? 'GET' : 'POST', path, {
      headers,
      ...defined({ body }),
    })
    return { ended: reply.status, text: reply.body['detail'] }
  }

async function portInUse(): Promise<void> {
  const port = await probePort('127.0.0.1', 0)
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  try {
    await takePort('port', '127.0.0.1', port)
  } finally {
    server.close()
  }
}

const ZONES = 'eu-1-a'

test.each<readonly [mistake: string, make: () => Promise<Told>, ended: Told['ended'], text: string]>([
  [
    'flags of npm start without the two dashes',
    refusedStart(() => parseOptions(['0'], { npm_lifecycle_event: 'start', npm_config_port: 'true' })),
    'refused',
    'npm took --port for itself. Write two dashes before the flags: npm start -- --port PORT',
  ],
  [
    'a port that another program has',
    refusedStart(portInUse),
    'refused',
    'Port PORT on 127.0.0.1 is in use by NAME (process ID). Stop what uses it, or choose another: npm start -- ' +
      '--port PORT (0 takes a free one)',
  ],
  [
    'a data folder where nothing can be made',
    refusedStart(() => prepareDataFolder('/proc/svccloud')),
    'refused',
    'The folder /proc/svccloud cannot be made there. Choose another: npm start -- --data DIR',
  ],
  [
    'a second start in the same folder',
    refusedStart(() => {
      const { release } = lockDataFolder(folder)
      try {
        lockDataFolder(folder)
      } finally {
        release()
      }
    }),
    'refused',
    'The folder DIR is in use by another svccloud. Stop that one, or choose another folder: npm start -- --data DIR',
  ],
  [
    'an address without its scheme',
    svccloud('login', '--url', 'localhost:8080', '--token', 'x'),
    4,
    'localhost:8080 is not the URL of a service: it must start with http:// or https://, as in http://localhost:8080\n',
  ],
  [
    'a command in the plural',
    svccloud('servers', 'list'),
    4,
    'there is no command servers list; did you mean server list?\n',
  ],
  [
    'the words turned round',
    svccloud('create', 'server'),
    4,
    'there is no command create server; did you mean server create?\n',
  ],
  [
    'a verb that is misspelt',
    svccloud('server', 'craete'),
    4,
    'there is no command server craete; did you mean server create?\n',
  ],
  ['a verb that there is not', svccloud('plan', 'buy'), 4, 'there is no command plan buy; plan has list\n'],
  [
    'a flag that is misspelt',
    create('eu-1-a', '--lables', 'a=b'),
    4,
    'there is no flag --lables; did you mean --labels?\n',
  ],
  [
    'flags that are missing',
    svccloud('server', 'create', '--hostname', 'db'),
    4,
    '--zone, --plan and one of --template and --custom-image-id are required\n',
  ],
  [
    'a value that is none of the choices',
    create('eu-1-a', '--ha-policy', 'restrat'),
    4,
    '--ha-policy is one of restart, none; did you mean restart?\n',
  ],
  [
    'a zone that is misspelt',
    create('eu-1a'),
    3,
    `400 Bad Request: zone: there is no zone eu-1a; did you mean eu-1-a? (there are ${ZONES})\n`,
  ],
  [
    'a plan that there is not',
    create('eu-1-a', '--plan', 'huge'),
    3,
    '400 Bad Request: plan: there is no plan huge; there are premium-4c-8g, starter-1c-1g, starter-2c-4g, tiny\n',
  ],
  [
    'a template that is misspelt',
    create('eu-1-a', '--template', 'debian13'),
    3,
    '400 Bad Request: template: there is no template debian13; did you mean debian-13? (there are debian-13, ' +
      'tiny-linux)\n',
  ],
  [
    'a server without an SSH key',
    create('eu-1-a'),
    3,
    '400 Bad Request: ssh_key_ids: a server needs at least one SSH key: add one to the account, or give ssh_keys\n',
  ],
  [
    'the path of a key in place of the key',
    svccloud('ssh-key', 'create', '--name', 'x', '--public-key', '/root/.ssh/id_ed25519.pub'),
    4,
    '--public-key needs the content of the file: use --public-key @/root/.ssh/id_ed25519.pub to read it\n',
  ],
  [
    'a column that there is not',
    svccloud('server', 'list', '--columns', 'hostname,sate'),
    4,
    'there is no column sate; did you mean state?\n',
  ],
  ['a profile that there is not', svccloud('profile', 'use', 'work'), 4, 'there is no profile work; there are none\n'],
  [
    'something to be destroyed in a script',
    svccloud('server', 'delete', 'web'),
    4,
    'delete server web cannot be undone: confirm with --yes\n',
  ],
  [
    'a token without the word Bearer',
    request({ authorization: 'svccloud_w_abc' }),
    401,
    'The Authorization header must be the word Bearer, a space and an API token: Authorization: Bearer svccloud_…',
  ],
  ['a request without a token', request({}), 401, 'Sign in, or send a valid API token.'],
])('%s', async (_mistake, make, ended, text) => {
  expect(await make()).toEqual({ ended, text })
})

test('an empty list says so, and not as an answer', async () => {
  expect(await shared.world.svccloud(['init-script', 'list'])).toEqual({
    code: 0,
    out: '',
    error: 'There are no init scripts.\n',
  })
})
