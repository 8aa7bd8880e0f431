/** Moving to a page of the portal. */
import { useNavigate } from '@tanstack/react-router'

export function useGo(): (href: string) => void {
  const navigate = useNavigate()
  // paths of nouns are data: the router takes them as addresses
  return (href) => void navigate({ href } as unknown as Parameters<typeof navigate>[0])
}
