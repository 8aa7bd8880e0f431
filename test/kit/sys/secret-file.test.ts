import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readTlsFolder } from '../../../controllers/network/ovn/tls.ts'
import { openObjectStorage } from '../../../integrations/object-storage/configuration.ts'
import { openOrganisationPlatform } from '../../../integrations/organisation-platform/configuration.ts'
import { openPayments } from '../../../integrations/payments/configuration.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { readSecretFile } from '../../../kit/sys/secret-file.ts'

test('a secret is the text of its file; who reads an empty one is refused, with the name of the file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'secrets-'))
  try {
    const written = async (name: string, text: string) => {
      await writeFile(join(folder, name), text)
      return join(folder, name)
    }
    expect(await readSecretFile(await written('token', ' secret\n'))).toBe('secret')
    const empty = await written('empty', ' \n')
    const platform = { organisationPlatformUrl: 'http://127.0.0.1:1', organisationPlatformTokenFile: empty }
    for (const name of ['tls.key', 'tls.crt']) await written(name, 'PEM')
    const authority = await written('ca.crt', ' \n')
    await expect(readSecretFile(empty)).rejects.toThrow(`${empty} is empty`)
    await expect(openPayments({ stripeKeyFile: empty })).rejects.toThrow('is empty')
    await expect(openOrganisationPlatform(platform, systemClock)).rejects.toThrow('is empty')
    await expect(readTlsFolder(folder)).rejects.toThrow('ca.crt is empty')
    const object = {
      objectStorageControlUrl: 'https://127.0.0.1:1',
      objectStorageTokenFile: await written('token', 'secret\n'),
      objectStorageEndpoint: 'https://{zone}.example.com',
      objectStorageAuthorityFile: authority,
      objectStorageZones: ['z1'],
    }
    await expect(openObjectStorage(object, systemClock)).rejects.toThrow('ca.crt is empty')
    // Machines are configured with the text: another one, if only by a newline, configures all of them again.
    await written('ca.crt', 'PEM\n')
    expect((await readTlsFolder(folder)).authority).toBe('PEM\n')
    const { stores } = await openObjectStorage(object, systemClock)
    expect(stores.map(({ certificateAuthority }) => certificateAuthority)).toEqual(['PEM\n'])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
