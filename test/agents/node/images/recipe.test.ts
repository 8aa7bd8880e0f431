import { expect, test } from 'vitest'
import { managedSystem } from '../../../../agents/node/images/managed/recipe.ts'
import { MANAGED_TEMPLATES } from '../../../../domain/managed-machine.ts'

test.each(MANAGED_TEMPLATES)('a machine of %s that stands still at its boot boots anew', async (template) => {
  const { kernelArguments } = await managedSystem(template)
  expect(kernelArguments).toContain('systemd.crash_action=reboot')
  expect(kernelArguments.some((text) => /^panic=[1-9]/.test(text))).toBe(true)
})
