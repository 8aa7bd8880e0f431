/** Settings of the process that migrates the database. */
import { z } from 'zod'
import { databaseSettings, logLevel } from '../kit/sys/settings.ts'

export const MigrationsSettings = z.strictObject({ databaseUrl: databaseSettings.databaseUrl, logLevel })
