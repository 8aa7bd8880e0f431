/** Operations name who asked for them. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withActorNames } from '../../../../apiserver/nouns/operation/views.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let colleague: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  colleague = await cloud.join(owner.accountId, 'colleague@example.com')
})
afterAll(() => cloud.close())

const body = (name: string) => ({ body: { zone: cloud.zone, name } })
/** The id of the operation that makes a network. */
const made = ({ body: { operation } }: { readonly body: Record<string, any> }): string => operation.id
const shown = async (person: Person, id: string) => {
  const one = (await person.send('GET', `/v1/operations/${id}`)).body['operation']
  const [listed] = (await person.send('GET', `/v1/operations?id=${id}`)).body['items']
  expect(listed.actor_name).toBe(one.actor_name)
  return [one.actor, one.actor_name]
}

test('a person by email, also after they have left; a token by its name', async () => {
  const byPerson = made(await colleague.send('POST', '/v1/networks', body('one')))
  const authorization = `Bearer ${await owner.token('read_write')}`
  const byToken = made(await cloud.send('POST', '/v1/networks', { ...body('two'), headers: { authorization } }))
  expect(await shown(owner, byPerson)).toEqual([`user:${colleague.userId}`, 'colleague@example.com'])
  const [actor, name] = await shown(owner, byToken)
  expect(actor).toBe(`token:${name}`)
  await owner.send('DELETE', `/v1/account/members/${colleague.userId}`)
  expect(await shown(owner, byPerson)).toEqual([`user:${colleague.userId}`, 'colleague@example.com'])
})

test('the address of a person does not change: history names them by it', async () => {
  const set = (values: { readonly email?: string; readonly disabled_at?: Date | null }) =>
    cloud.db.updateTable('app_user').set(values).where('id', '=', owner.userId).execute()
  await expect(set({ email: 'other@example.com' })).rejects.toThrow('does not change')
  await set({ email: 'owner@example.com', disabled_at: null })
})

test('what is neither a person nor a token has no name', async () => {
  const names = async (actor: string) =>
    (await withActorNames(cloud.db, [{ actor }])).map(({ actor_name }) => actor_name)
  expect(await names(`user:${owner.userId}`)).toEqual(['owner@example.com'])
  for (const actor of ['operator', 'system:server', 'user:kubernetes', `user:${cloud.zone}`, ''])
    expect(await names(actor)).toEqual([null])
})
