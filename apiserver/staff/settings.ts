/** Settings of the staff commands. */
import { z } from 'zod'
import { databaseSettings, sealingSettings } from '../../kit/sys/settings.ts'

export const StaffSettings = z.strictObject({
  databaseUrl: databaseSettings.databaseUrl,
  sealingKeys: sealingSettings.sealingKeys,
})
