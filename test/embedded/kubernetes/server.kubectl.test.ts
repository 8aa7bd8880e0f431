/** kubectl against the server over HTTPS, in a separate folder. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startKubernetesApi, type EmbeddedServer } from '../../../embedded/kubernetes/server/serve.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { widget, widgetDefinition } from './world.ts'

const run = promisify(execFile)
let folder: string
let server: EmbeddedServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-kubectl-'))
  server = await startKubernetesApi({
    folder,
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  })
  await apply(widgetDefinition)
})
afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

const kubectl = async (...args: string[]): Promise<string> =>
  (await run('kubectl', ['--kubeconfig', server.kubeconfig, '--cache-dir', join(folder, 'cache'), ...args])).stdout

async function apply(object: object, ...more: string[]): Promise<string> {
  const file = join(folder, 'object.json')
  await writeFile(file, JSON.stringify(object))
  return kubectl('apply', '-f', file, ...more)
}

test('the kubeconfig is for its owner only', async () => {
  expect((await stat(server.kubeconfig)).mode & 0o777).toBe(0o600)
})

test('a custom kind is applied, shown, changed, explained and deleted', async () => {
  await kubectl('wait', '--for=condition=Established', 'crd/widgets.example.dev', '--timeout=10s')
  expect(await apply(widget('one'))).toBe('widget.example.dev/one created\n')
  expect(await apply(widget('one'))).toBe('widget.example.dev/one unchanged\n')
  expect(await kubectl('get', 'wd', 'one', '--no-headers')).toMatch(/^one\s+1\s+\d+s\n$/)
  expect(await kubectl('scale', 'widget', 'one', '--replicas=3')).toContain('scaled')
  expect(await kubectl('label', 'widget', 'one', 'a=b')).toContain('labeled')
  expect(await kubectl('get', 'example', '-l', 'a=b', '-o', 'jsonpath={.items[*].spec.replicas}')).toBe('3')
  expect(await kubectl('explain', 'widget.spec.size')).toContain('How big it is.')
  expect(await kubectl('describe', 'widget', 'one')).toContain('Replicas:  3')
  expect(await apply(widget('two'), '--server-side')).toContain('serverside-applied')
  expect(await kubectl('delete', 'widget', 'one', 'two')).toContain('deleted')
  expect(await kubectl('get', 'widgets', '-o', 'name')).toBe('')
})

test('built-in kinds are created from protobuf and merged strategically', async () => {
  await kubectl('create', 'namespace', 'n')
  await kubectl('create', 'secret', 'generic', 's', '--namespace=n', '--from-literal=a=b')
  expect(await kubectl('get', 'secret', 's', '--namespace=n', '-o', 'jsonpath={.data.a}')).toBe('Yg==')
  await kubectl('create', 'configmap', 'c', '--namespace=n', '--from-literal=a=1')
  await kubectl('patch', 'configmap', 'c', '--namespace=n', '-p', '{"data":{"b":"2"}}')
  expect(await kubectl('get', 'configmap', 'c', '--namespace=n', '-o', 'jsonpath={.data}')).toBe('{"a":"1","b":"2"}')
  expect(await kubectl('auth', 'can-i', 'delete', 'widgets')).toBe('yes\n')
  expect(await kubectl('delete', 'namespace', 'n', '--timeout=30s')).toContain('deleted')
})

test('another user sees what a role allows', async () => {
  const file = join(folder, 'reader.kubeconfig')
  await server.issue({ user: 'reader', groups: [] }, file)
  const asReader = (...args: string[]) =>
    run('kubectl', ['--kubeconfig', file, '--cache-dir', join(folder, 'cache-reader'), ...args])
  await expect(asReader('get', 'widgets')).rejects.toThrow('User "reader" cannot list resource "widgets"')
  await kubectl('create', 'role', 'reads', '--verb=get,list', '--resource=widgets.example.dev')
  await kubectl('create', 'rolebinding', 'reads', '--role=reads', '--user=reader')
  await expect(asReader('get', 'widgets')).resolves.toBeDefined()
})
