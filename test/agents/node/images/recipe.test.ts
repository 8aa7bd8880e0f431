import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { MACHINE_NETWORK, managedSystem, recipeOf } from '../../../../agents/node/images/managed/recipe.ts'
import { MANAGED_TEMPLATES } from '../../../../domain/managed-machine/rules.ts'

test.each(MANAGED_TEMPLATES)('a machine of %s that hangs at its boot boots again', async (template) => {
  const { kernelArguments } = await managedSystem(template)
  expect(kernelArguments).toContain('systemd.crash_action=reboot')
  expect(kernelArguments.some((text) => /^panic=[1-9]/.test(text))).toBe(true)
})

test.each(MANAGED_TEMPLATES)('a machine of %s gets its addresses as all others do', async (template) => {
  const { enabled, files, masked } = await managedSystem(template)
  const network = Object.entries(files).filter(([path]) => /^etc\/systemd\/network(d\.conf\.d)?\//.test(path))
  expect(Object.fromEntries(network)).toEqual(MACHINE_NETWORK)
  expect(enabled).toContain('systemd-networkd')
  expect(masked.join(' ')).not.toContain('networkd')
})

test('the image of nodes is another one with another driver of volumes', async () => {
  const recipe = await recipeOf('kubernetes-node')
  for (const file of ['main.ts', 'mounts.ts', 'registration.proto'])
    expect(recipe).toContain(JSON.stringify(await readFile(`addons/csi/${file}`, 'utf8')))
  expect(recipe).toMatch(/"@grpc\/grpc-js":"\d+\.\d+\.\d+"/)
  expect(await recipeOf('managed-machine')).not.toContain('addons/csi')
})
