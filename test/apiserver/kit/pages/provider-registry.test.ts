import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { providerRegistryPages, readProviderRegistry } from '../../../../apiserver/kit/pages/provider-registry.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'

const START = 'terraform-provider-svccloud_1.2.3_'
const SUM = 'a'.repeat(64)
const FILES: Readonly<Record<string, string>> = {
  [`${START}linux_amd64.zip`]: 'the program',
  [`${START}manifest.json`]: '{"version":1,"metadata":{"protocol_versions":["6.0"]}}',
  [`${START}SHA256SUMS`]: `${SUM}  ${START}linux_amd64.zip\n${SUM}  ${START}manifest.json\n`,
  [`${START}SHA256SUMS.sig`]: 'signature',
  'signing-key.json': '{"key_id":"0123456789ABCDEF","ascii_armor":"key"}',
  'private-key.asc': 'secret',
}

const folderWith = async (files: Readonly<Record<string, string>>): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-registry-'))
  folders.push(folder)
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return folder
}
const folders: string[] = []
let server: Server
let url = ''

beforeAll(async () => {
  const pages = providerRegistryPages(await readProviderRegistry(await folderWith(FILES)), systemRandom)
  server = createServer((request, response) => {
    if (!pages(request, response)) response.writeHead(418).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // a socket of TCP
})
afterAll(async () => {
  server.close()
  for (const folder of folders) await rm(folder, { recursive: true })
})
const json = async (path: string): Promise<unknown> => (await fetch(`${url}${path}`)).json()

test('a program finds the versions, the platforms and the files', async () => {
  const services = (await json('/.well-known/terraform.json')) as { readonly 'providers.v1': string }
  const base = `${services['providers.v1']}svccloud/svccloud`
  expect(await json(`${base}/versions`)).toEqual({
    versions: [{ version: '1.2.3', protocols: ['6.0'], platforms: [{ os: 'linux', arch: 'amd64' }] }],
  })
  const found = (await json(`${base}/1.2.3/download/linux/amd64`)) as Readonly<Record<string, string>>
  expect(found).toMatchObject({
    filename: `${START}linux_amd64.zip`,
    shasum: SUM,
    signing_keys: { gpg_public_keys: [{ key_id: '0123456789ABCDEF', ascii_armor: 'key' }] },
  })
  const texts = ['download_url', 'shasums_url', 'shasums_signature_url'].map((name) =>
    fetch(`${url}${found[name]}`).then((answer) => answer.text()),
  )
  expect(await Promise.all(texts)).toEqual(['the program', FILES[`${START}SHA256SUMS`], 'signature'])
})

test('nothing else is sent', async () => {
  for (const path of [
    '/terraform/files/private-key.asc',
    '/terraform/files/signing-key.json',
    '/terraform/files/../signing-key.json',
    '/terraform/files/%2e%2e%2fetc%2fpasswd',
    '/terraform/files/',
    '/terraform/providers/v1/other/other/versions',
    '/terraform/providers/v1/svccloud/svccloud/9.9.9/download/linux/amd64',
    '/terraform/providers/v1/svccloud/svccloud/1.2.3/download/plan9/amd64',
  ])
    expect((await fetch(`${url}${path}`)).status, path).toBe(404)
  expect((await fetch(`${url}/terraform/files/${START}SHA256SUMS`, { method: 'POST' })).status).toBe(405)
  expect((await fetch(`${url}/v1/servers`)).status).toBe(418)
})

test('HEAD has the size, and no body', async () => {
  const answer = await fetch(`${url}/terraform/files/${START}linux_amd64.zip`, { method: 'HEAD' })
  expect([answer.status, answer.headers.get('content-length'), await answer.text()]).toEqual([200, '11', ''])
})

test.each(['linux_amd64.zip', 'SHA256SUMS.sig', 'manifest.json', 'SHA256SUMS'])(
  'a release without its %s is refused',
  async (end) => {
    const { [`${START}${end}`]: _missing, ...files } = FILES
    await expect(readProviderRegistry(await folderWith(files))).rejects.toThrow()
  },
)
