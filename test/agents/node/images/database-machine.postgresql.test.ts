/** What the machine of a database runs: the real PostgreSQL, made once, with one owner, over TLS. */
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { DATABASE_EXTENSIONS } from '../../../../agents/node/images/managed/database-contents.ts'
import { eventually, until } from '../../../eventually.ts'
import {
  type DatabaseMachine,
  newDataFolder,
  openDatabaseMachine,
  passwordChange,
  passwordOf,
} from './database-machine.ts'

let data: string
let machine: DatabaseMachine

beforeEach(async () => {
  data = await newDataFolder()
  machine = await openDatabaseMachine({ data })
})
afterEach(async () => {
  await machine.close()
  await rm(data, { recursive: true, force: true })
})

const healthy = (of = machine) =>
  until(
    'PostgreSQL to be healthy',
    () => of.look(),
    ({ isHealthy }) => isHealthy,
  )

it('has a database that its owner alone reaches, over TLS alone', async () => {
  expect(await machine.tell()).toMatchObject({ generation: 1, isHealthy: false })
  const answer = await healthy()
  expect(answer.report.postgresql).toMatchObject({ state: 'running', passwordGeneration: 1 })
  expect(Object.keys(answer.report.services).toSorted()).toEqual(['keeper', 'postgresql'])
  await machine.query('create table product (name text)')
  expect(await machine.query('select current_user, current_database()')).toEqual([
    { current_user: 'ada', current_database: 'shop' },
  ])
  const [settings] = await machine.query(
    `select current_setting('max_connections') as connections, current_setting('ssl') as ssl,
            (select rolsuper from pg_roles where rolname = current_user) as super`,
  )
  expect(settings).toEqual({ connections: '100', ssl: 'on', super: false })
  await expect(machine.connect({ ssl: false }), 'without TLS').rejects.toThrow('no pg_hba.conf entry')
  await expect(machine.connect({ password: 'guessed' })).rejects.toThrow('password authentication failed')
  await expect(machine.connect({ user: 'postgres' })).rejects.toThrow('no pg_hba.conf entry')
  await expect(machine.connect({ database: 'postgres' })).rejects.toThrow('no pg_hba.conf entry')
  await expect(machine.connect({ ssl: { ca: [] } }), 'another authority').rejects.toThrow('certificate')
})

it('lets its owner create what is listed, and nothing else', async () => {
  await machine.tell()
  await healthy()
  const trusted = await machine.query(
    'select distinct name from pg_available_extension_versions where trusted order by name',
  )
  expect(trusted.map(({ name }) => name)).toEqual(DATABASE_EXTENSIONS)
  for (const name of DATABASE_EXTENSIONS) await machine.query(`create extension if not exists "${name}"`)
  await expect(machine.query('create extension pageinspect')).rejects.toThrow('permission denied')
})

it('refuses the old password once it says that the new one holds, and ends its sessions', async () => {
  await machine.tell()
  await healthy()
  const session = await machine.connect()
  const ended = new Promise((resolve) => session.once('end', resolve))
  // Told again when it could not, as hosts do.
  await expect
    .poll(() => machine.tell(passwordChange(2)), { interval: 500 })
    .toMatchObject({ detail: '', report: { postgresql: { passwordGeneration: 2 } } })
  await ended
  await expect(machine.connect({ password: passwordOf(1) })).rejects.toThrow('password authentication failed')
  expect(await machine.query('select 1 as one')).toEqual([{ one: 1 }])
})

it('says when its owner no longer gets in with the password that was delivered, and a new one mends it', async () => {
  const signsIn = (is: boolean) =>
    until(
      `that the owner ${is ? 'gets' : 'does not get'} in`,
      () => machine.look(),
      ({ report }) => report.postgresql?.ownerSignsIn === is,
    )
  const told = (generation: number) =>
    until(
      'the password to hold',
      () => machine.tell(passwordChange(generation)),
      ({ report }) => report.postgresql?.passwordGeneration === generation,
    )
  await machine.tell()
  await healthy()
  await signsIn(true)
  const byHand = 'changed by hand 4711'
  await machine.query(`alter role ada password '${byHand}'`)
  expect(await signsIn(false), 'its machine is whole').toMatchObject({ isHealthy: true })
  await expect(machine.connect({ password: passwordOf(1) })).rejects.toThrow('password authentication failed')
  const session = await machine.connect({ password: byHand })
  await session.end()
  await told(2)
  await signsIn(true)
  await expect(machine.connect({ password: byHand })).rejects.toThrow('password authentication failed')
  await machine.query('revoke connect on database shop from ada')
  await signsIn(false)
  await expect(machine.connect()).rejects.toThrow('permission denied')
  await told(3)
  await signsIn(true)
  expect(await machine.query('select 1 as one')).toEqual([{ one: 1 }])
})

it('comes back from a kill with what was committed, and takes nothing that it cannot run', async () => {
  await machine.tell()
  await healthy()
  await machine.query('create table sale as select 7 as amount')
  await machine.kill()
  expect(await machine.ask('status')).toMatchObject({ isHealthy: false, detail: expect.stringContaining('postgresql') })
  await machine.ask('start')
  await healthy()
  expect(await machine.query('select amount from sale')).toEqual([{ amount: 7 }])
  const unusable = { ...passwordChange(2), certificate: 'nonsense' }
  expect(await machine.tell(unusable)).toMatchObject({
    generation: 1,
    detail: expect.stringContaining('generation 2 is refused: the certificate cannot be used'),
  })
  expect(await machine.tell({ ...passwordChange(2), settings: { work_mem: 'much' } })).toMatchObject({
    generation: 1,
    report: { postgresql: { passwordGeneration: 1 } },
    detail: expect.stringContaining('work_mem'),
  })
  await expect(machine.connect({ password: passwordOf(2) })).rejects.toThrow('password authentication failed')
})

it('does not say that a password holds that nothing has taken', async () => {
  await machine.tell()
  await healthy()
  await machine.kill()
  // Another one has the port: the server cannot come back.
  const other = createServer()
  await eventually('the port', async () => {
    other.listen(machine.port, '::') // and all of IPv4
    await once(other, 'listening')
    return true
  })
  expect(await machine.tell(passwordChange(2))).toMatchObject({
    generation: 1,
    report: { postgresql: { passwordGeneration: 1 } },
    isHealthy: false,
  })
  other.close()
  await until(
    'the password to hold',
    () => machine.tell(passwordChange(2)),
    ({ generation, report }) => generation > 2 && report.postgresql?.passwordGeneration === 2,
  )
})

it('finds the data of a replaced machine and creates none', async () => {
  await machine.tell()
  await healthy()
  await machine.query('create table sale as select 7 as amount')
  await machine.close()
  machine = await openDatabaseMachine({ data })
  await machine.tell(passwordChange(2))
  await healthy()
  expect(await machine.query('select amount from sale')).toEqual([{ amount: 7 }])
  await expect(machine.connect({ password: passwordOf(1) })).rejects.toThrow('password authentication failed')
})
