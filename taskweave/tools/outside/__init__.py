"""What of an organization's world leaves the machine, where a server is named: mail by SMTP, posts by Mastodon's API.

`servers` says which servers, `leaving` what goes there at a week's close, `smtp` and `mastodon` send one thing each.  When something is
sent, and that it is sent once, is not known here.
"""
