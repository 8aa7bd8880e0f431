/** Why a dev cluster is not for production; why it failed. */
import type { ReactNode } from 'react'
import type { DevCluster } from '../../../client/schema.ts'
import { Note } from '../../ui/state.tsx'

export const Warning = ({ item }: { readonly item: DevCluster }): ReactNode => (
  <Note look="busy">{item.failure_reason ?? item.production_warning}</Note>
)
