/** Settings of what staff do on the machine. */
import { z } from 'zod'
import { databaseSettings, sealingSettings } from '../../kit/sys/settings.ts'

export const StaffSettings = z.strictObject({
  databaseUrl: databaseSettings.databaseUrl,
  sealingKeys: sealingSettings.sealingKeys,
})
