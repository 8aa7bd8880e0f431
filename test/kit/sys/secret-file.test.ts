import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readTlsFolder } from '../../../controllers/network/ovn/tls.ts'
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
    await written('ca.crt', '')
    await expect(readSecretFile(empty)).rejects.toThrow(`${empty} is empty`)
    await expect(openPayments({ stripeKeyFile: empty })).rejects.toThrow('is empty')
    await expect(openOrganisationPlatform(platform, systemClock)).rejects.toThrow('is empty')
    await expect(readTlsFolder(folder)).rejects.toThrow('ca.crt is empty')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
