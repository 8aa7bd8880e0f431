/** `/login` of staff. */
import type { ReactNode } from 'react'
import { forget } from '../../api/cache.ts'
import { sessionLost } from '../../api/client.ts'
import { safeReturn } from '../../api/return-to.ts'
import { Outside } from '../../pages/outside.tsx'
import { StaffSignIn } from '../sign-in.tsx'
import { o } from '../texts/index.ts'

/** The cache holds nothing of whoever was signed in before. */
function enter(): void {
  forget()
  sessionLost.set(false)
  location.replace(safeReturn(new URLSearchParams(location.search).get('return_to'), location.origin))
}

export const StaffLoginPage = (): ReactNode => (
  <Outside title={o().sign.title} note={o().sign.note}>
    <StaffSignIn onDone={enter} />
  </Outside>
)
