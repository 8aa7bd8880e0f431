import { expect, test } from 'vitest'
import {
  createClient,
  type Client,
  type Operation as OperationView,
  OperationFailed,
  pages,
  SvccloudError,
  unwrap,
  waitForOperation,
} from '../../client/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { PUBLIC_KEY } from '../apiserver/cloud.ts'
import { endServerOperation } from '../apiserver/end-operation.ts'
import { useWorld } from '../cli/command-line.ts'

const shared = useWorld()
const client = async (scope: string): Promise<Client> =>
  createClient({ url: `${shared.world.url}/`, token: await shared.world.owner.token(scope) })

test('reads and writes with types, and throws refusals as what they are', async () => {
  const writer = await client('read_write')
  expect(
    (await unwrap(writer.POST('/v1/ssh-keys', { body: { name: 'key', public_key: PUBLIC_KEY } }))).ssh_key.fingerprint,
  ).toMatch(/^SHA256:/)
  const refused = unwrap(
    (await client('read')).POST('/v1/ssh-keys', { body: { name: 'other', public_key: PUBLIC_KEY } }),
  )
  await expect(refused).rejects.toThrow(SvccloudError)
  await expect(refused).rejects.toMatchObject({
    status: 403,
    problem: { status: 403 },
    requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
  })
  await expect(unwrap(createClient({ url: shared.world.url }).GET('/v1/zones'))).rejects.toMatchObject({ status: 401 })
})

test('lists to the end, waits for success, and throws what failed', async () => {
  const { cloud, owner } = shared.world
  const writer = await client('read_write')
  const made = await Promise.all(
    ['a', 'b', 'c'].map((hostname) =>
      unwrap(
        writer.POST('/v1/servers', {
          body: { zone: cloud.zone, hostname, plan: 'tiny', template: 'tiny-linux', labels: { tier: 'x' } },
        }),
      ),
    ),
  )
  const names: string[] = []
  for await (const { hostname } of pages((query) =>
    writer.GET('/v1/servers', { params: { query: { ...query, limit: 1, label: ['tier=x'] } } }),
  ))
    names.push(hostname)
  expect(names.toSorted()).toEqual(['a', 'b', 'c'])

  const settle = (id: string, status: 'succeeded' | 'failed', error: string) =>
    endServerOperation(
      cloud.admin,
      { namespace: accountNamespace(owner.accountId), name: id },
      { status, step: '', stepIndex: 0, error },
    )
  const [good, bad] = made
  if (good === undefined || bad === undefined) throw new Error('three were made')
  const seen: OperationView['status'][] = []
  const waiting = waitForOperation(writer, good.operation.id, { onChange: ({ status }) => seen.push(status) })
  await settle(good.operation.id, 'succeeded', '')
  expect(await waiting).toMatchObject({ id: good.operation.id, status: 'succeeded' })
  expect(seen.at(-1)).toBe('succeeded')
  await settle(bad.operation.id, 'failed', 'No room.')
  await expect(waitForOperation(writer, bad.operation.id)).rejects.toThrow(OperationFailed)
  await expect(waitForOperation(writer, bad.operation.id)).rejects.toThrow('No room.')
})
